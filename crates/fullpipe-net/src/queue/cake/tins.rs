//! CAKE's traffic classes: the DSCPs, rate and weight of each
//! (sch_cake.c, cake_config_*()).

use super::params::Tins;

pub(super) const MAX_TINS: usize = 8;
/// Values of the DSCP field.
const DSCPS: usize = 64;

/// Rate and weight of one tin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Share {
    pub(super) bytes_per_s: u64,
    pub(super) quantum: u32,
}

pub(super) fn count(tins: Tins) -> usize {
    match tins {
        Tins::Besteffort => 1,
        Tins::Diffserv3 => 3,
        Tins::Diffserv4 => 4,
        Tins::Diffserv8 | Tins::Precedence => MAX_TINS,
    }
}

/// Rates and weights for a bandwidth.
pub(super) fn shares(tins: Tins, bytes_per_s: u64) -> [Share; MAX_TINS] {
    let mut shares = [Share::default(); MAX_TINS];
    // Right shifts of the total rate.
    let shifts: &[u32] = match tins {
        Tins::Besteffort => {
            shares[0] = Share {
                bytes_per_s,
                quantum: 65_535,
            };
            &[]
        }
        Tins::Diffserv3 => &[0, 4, 2],
        Tins::Diffserv4 => &[0, 4, 1, 2],
        Tins::Diffserv8 | Tins::Precedence => {
            let mut next = Share {
                bytes_per_s,
                quantum: 256,
            };
            for share in &mut shares {
                *share = next;
                next.bytes_per_s = next.bytes_per_s * 7 / 8;
                next.quantum = next.quantum * 7 / 8;
            }
            &[]
        }
    };
    for (share, shift) in shares.iter_mut().zip(shifts) {
        *share = Share {
            bytes_per_s: bytes_per_s >> shift,
            quantum: 1024 >> shift,
        };
    }
    shares
}

/// The tin of each DSCP; those that are not named go to the best-effort one.
pub(super) fn by_dscp(tins: Tins) -> [u8; DSCPS] {
    let (default, named): (u8, &[(u8, &[u8])]) = match tins {
        Tins::Besteffort => (0, &[]),
        // LE and CS1 give way; TOS4, VA, EF, CS6 and CS7 go first.
        Tins::Diffserv3 => (0, &[(1, &[1, 8]), (2, &[4, 44, 46, 48, 56])]),
        // Bulk; video: TOS4, CS2, AF2x, CS3, AF3x, AF4x; voice: CS4 to CS7, VA, EF.
        Tins::Diffserv4 => (
            0,
            &[
                (1, &[1, 8]),
                (2, &[4, 16, 18, 20, 22, 24, 26, 28, 30, 34, 36, 38]),
                (3, &[32, 40, 44, 46, 48, 56]),
            ],
        ),
        Tins::Diffserv8 => (
            2,
            &[
                (0, &[1]),
                (1, &[2, 8, 10, 12, 14]),
                (3, &[24, 26, 28, 30, 34, 36, 38]),
                (4, &[4, 18, 20, 22]),
                (5, &[16]),
                (6, &[32, 40, 44, 46]),
                (7, &[48, 56]),
            ],
        ),
        Tins::Precedence => {
            return std::array::from_fn(|dscp| (dscp >> 3) as u8);
        }
    };
    let mut table = [default; DSCPS];
    for (tin, dscps) in named {
        for dscp in *dscps {
            table[usize::from(*dscp)] = *tin;
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quanta(tins: Tins) -> Vec<u32> {
        let shares = shares(tins, 1_000_000);
        shares[..count(tins)]
            .iter()
            .map(|share| share.quantum)
            .collect()
    }

    #[test]
    fn weights_and_rates_are_the_kernels() {
        assert_eq!(quanta(Tins::Diffserv3), [1024, 64, 256]);
        assert_eq!(quanta(Tins::Diffserv4), [1024, 64, 512, 256]);
        let eighths = [256, 224, 196, 171, 149, 130, 113, 98];
        assert_eq!(quanta(Tins::Diffserv8), eighths);
        assert_eq!(quanta(Tins::Precedence), eighths);
        assert_eq!(quanta(Tins::Besteffort), [65_535]);
        let rates = shares(Tins::Diffserv4, 1_000_000).map(|share| share.bytes_per_s);
        assert_eq!(rates[..4], [1_000_000, 62_500, 500_000, 250_000]);
    }

    #[test]
    fn codepoints_of_rfc_4594_go_where_the_kernels_tables_send_them() {
        let (cs0, le, cs1, af11, cs2, af21, af41, cs5, ef, cs7) =
            (0, 1, 8, 10, 16, 18, 34, 40, 46, 56);
        let of = |tins, dscps: [usize; 10]| dscps.map(|dscp| by_dscp(tins)[dscp]);
        let all = [cs0, le, cs1, af11, cs2, af21, af41, cs5, ef, cs7];
        assert_eq!(of(Tins::Diffserv3, all), [0, 1, 1, 0, 0, 0, 0, 0, 2, 2]);
        assert_eq!(of(Tins::Diffserv4, all), [0, 1, 1, 0, 2, 2, 2, 3, 3, 3]);
        assert_eq!(of(Tins::Diffserv8, all), [2, 0, 1, 1, 5, 4, 3, 6, 6, 7]);
        assert_eq!(of(Tins::Precedence, all), [0, 0, 1, 1, 2, 2, 4, 5, 5, 7]);
    }
}

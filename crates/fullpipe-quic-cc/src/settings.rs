//! Which algorithm connections run, with which constants and seed. Must not know a stack.

use fullpipe_cc::{algorithm, set, sets, Algorithm, NativeController, Set};

use crate::host::{Host, Start};

/// An algorithm with its constants, for all connections of an endpoint.
#[derive(Clone)]
pub struct Settings {
    algorithm: &'static Algorithm,
    values: Vec<u32>,
    seed: u64,
}

/// Settings that no algorithm takes.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadSettings(String);

impl Settings {
    /// The parameter set of that name, such as `bbr3` or `cubic`.
    pub fn new(name: &str) -> Result<Self, BadSettings> {
        let unknown = || {
            let names = Self::names().join(", ");
            BadSettings(format!(
                "{name:?} is not a congestion control: one of {names}"
            ))
        };
        let set = set(name).ok_or_else(unknown)?;
        let algorithm = algorithm(set.algorithm).ok_or_else(unknown)?;
        if !is_served(set) {
            return Err(BadSettings(format!(
                "{name} needs facts that QUIC stacks do not tell"
            )));
        }
        Ok(Self {
            algorithm,
            values: set.values.clone(),
            seed: 0,
        })
    }

    /// What [`Self::new`] takes.
    pub fn names() -> Vec<&'static str> {
        let served = sets().iter().filter(|set| is_served(set));
        served.map(|set| set.name).collect()
    }

    /// Another value of a constant, in the unit of `fullpipe cc show`: `beta` of `cubic`, 0.85.
    pub fn constant(mut self, name: &str, value: f64) -> Result<Self, BadSettings> {
        let owner = self.algorithm.name;
        let mut known = self.algorithm.params.iter().zip(&mut self.values);
        let Some((param, stored)) = known.find(|(param, _)| param.name == name) else {
            return Err(BadSettings(format!("{owner} has no constant {name:?}")));
        };
        let scaled = (value * f64::from(param.scale)).round();
        if !(f64::from(param.min)..=f64::from(param.max)).contains(&scaled) {
            let bound = |stored: u32| f64::from(stored) / f64::from(param.scale);
            return Err(BadSettings(format!(
                "{owner}.{name}: {value} is outside {} to {}",
                bound(param.min),
                bound(param.max)
            )));
        }
        *stored = scaled as u32;
        Ok(self)
    }

    /// For the algorithm's random draws, such as when BBR probes. Connections draw differently; the same
    /// seed gives the n-th connection the same draws.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// The host of the n-th connection.
    pub fn host(&self, number: u64, start: &Start) -> Host {
        let made = NativeController::new(self.algorithm, &self.values);
        let control = made.expect("constants were checked, and sets are C");
        Host::new(control, start, mixed(self.seed, number))
    }
}

fn is_served(set: &Set) -> bool {
    let found = algorithm(set.algorithm);
    found.is_some_and(|algorithm| algorithm.flags_of(&set.values) & !Host::SERVES == 0)
}

/// A number that depends on every bit of both: the finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA
/// 2014).
fn mixed(seed: u64, number: u64) -> u32 {
    let mut bits = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((bits ^ (bits >> 31)) >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_the_mark_of_each_packet_is_refused() {
        let names = Settings::names();
        for name in [
            "reno",
            "cubic",
            "bbr1",
            "bbr2",
            "bbr3",
            "bbr3-linux",
            "tarn",
        ] {
            assert!(names.contains(&name), "{name}");
        }
        for name in ["dctcp", "prague"] {
            assert!(!names.contains(&name), "{name}");
            assert!(Settings::new(name).is_err(), "{name}");
        }
        let unknown = Settings::new("vegas")
            .map(|_| ())
            .expect_err("not built in");
        assert!(unknown.to_string().contains("bbr3"), "{unknown}");
    }

    #[test]
    fn constants_are_checked() {
        let cubic = Settings::new("cubic").expect("built in");
        assert!(cubic.clone().constant("beta", 0.85).is_ok());
        assert!(cubic.clone().constant("beta", 85.0).is_err());
        assert!(cubic.constant("gamma", 1.0).is_err());
    }

    #[test]
    fn connections_draw_differently_and_repeatably() {
        assert_eq!(mixed(1, 0), mixed(1, 0));
        assert_ne!(mixed(1, 0), mixed(1, 1));
        assert_ne!(mixed(1, 0), mixed(2, 0));
    }
}

//! Controllers of registered sets for the hosts of tests. Knows no host.

use fullpipe_cc::{set, Controller};

/// One of this set, with parameters changed by name.
pub(crate) fn controller(name: &str, changes: &[(&str, u32)]) -> Controller {
    let set = set(name).expect("a registered set");
    let algorithm = fullpipe_cc::algorithm(set.algorithm).expect("its algorithm");
    let mut values = set.values.clone();
    for (param, value) in changes {
        let mut known = algorithm.params.iter();
        let index = known.position(|known| known.name == *param);
        values[index.expect("a known parameter")] = *value;
    }
    Controller::new(algorithm, &values).expect("values in range")
}

/// The stored value of a parameter in this set.
pub(crate) fn stored(name: &str, param: &str) -> u32 {
    let set = set(name).expect("a registered set");
    let algorithm = fullpipe_cc::algorithm(set.algorithm).expect("its algorithm");
    let index = algorithm
        .params
        .iter()
        .position(|known| known.name == param);
    set.values[index.expect("a known parameter")]
}

//! Every algorithm that plans can name: those of cc/registry.h with their parameter sets, and those
//! that the program registers at run time. This module must not know where the latter come from.

use std::ffi::{c_char, CStr};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use serde::Serialize;

use crate::abi;
use crate::dynamic::Maker;
use crate::layout;

/// One constant of an algorithm.
#[derive(Clone, Debug, Serialize)]
pub struct Param {
    /// Name in scenarios and in the C struct.
    pub name: &'static str,
    /// Unit of the scaled value.
    pub unit: &'static str,
    /// What 0 means.
    pub zero: &'static str,
    /// Where the value comes from.
    pub source: &'static str,
    /// What it is for.
    pub meaning: &'static str,
    /// Stored default.
    pub default: u32,
    /// Least stored value.
    pub min: u32,
    /// Largest stored value.
    pub max: u32,
    /// What 1.0 of the unit is stored as.
    pub scale: u32,
    /// What 0 is stored as; above 0 where values may be below it.
    pub origin: u32,
}

/// One of an algorithm's own variables (cc/state.h).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Variable {
    /// Name in the algorithm's list.
    pub name: &'static str,
    /// Its column in tables: the name and the unit.
    pub column: &'static str,
    /// Unit of the values in tables.
    pub unit: &'static str,
    /// What it is.
    pub meaning: &'static str,
    /// What 1.0 of the unit in tables is stored as.
    pub scale: f64,
}

/// A variable has no value (`CC_NONE`).
const NONE: i64 = i64::MIN;

impl Variable {
    /// As an algorithm declares it. Names and units become columns: `w_max` in `packets` is
    /// `w_max_packets`, and rates, which C has in bytes/s, are in bit/s.
    pub fn new(name: &str, unit: &str, meaning: &str, scale: u32) -> Self {
        let is_word = |unit: &str| unit.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let (unit, ending, bits) = match unit {
            "bytes/s" => ("bit/s", "bps", 8.0),
            "bit/s" => ("bit/s", "bps", 1.0),
            "phase" => (unit, "", 1.0),
            _ if is_word(unit) => (unit, unit, 1.0),
            _ => (unit, "", 1.0),
        };
        let column = match ending {
            "" => name.to_owned(),
            _ => format!("{name}_{ending}"),
        };
        Self {
            name: name.to_owned().leak(),
            column: column.leak(),
            unit: unit.to_owned().leak(),
            meaning: meaning.to_owned().leak(),
            scale: f64::from(scale.max(1)) / bits,
        }
    }

    /// A stored value in the unit of tables.
    pub(crate) fn shown(&self, stored: i64) -> Option<f64> {
        (stored != NONE).then(|| stored as f64 / self.scale)
    }
}

/// One algorithm.
pub struct Algorithm {
    pub(crate) code: Code,
    /// Name in the registry.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// Specifications it follows.
    pub sources: &'static str,
    /// Its constants, in storage order.
    pub params: Vec<Param>,
    /// Its own variables, in the order in which they are read.
    pub variables: Vec<Variable>,
}

/// What is called.
pub(crate) enum Code {
    /// A row of native.h's table.
    C(&'static abi::Algorithm),
    /// A trait object for each connection.
    Dynamic { flags: u32, make: Box<Maker> },
}

/// A named set of parameter values of one algorithm.
#[derive(Clone, Debug, Serialize)]
pub struct Set {
    /// What users write.
    pub name: &'static str,
    /// Algorithm it belongs to.
    pub algorithm: &'static str,
    /// What sockets write (at most 15 characters).
    pub kernel_name: &'static str,
    /// For people.
    pub title: &'static str,
    /// All stored values, in the order of the algorithm's parameters.
    pub values: Vec<u32>,
}

impl Algorithm {
    /// The [`flags`](crate::flags) that it may ask for.
    pub fn flags(&self) -> u32 {
        match &self.code {
            Code::C(raw) => raw.flags,
            Code::Dynamic { flags, .. } => *flags,
        }
    }

    /// Those that hold with these stored constants, of which there must be as many as it has.
    pub fn flags_of(&self, params: &[u32]) -> u32 {
        assert_eq!(
            params.len(),
            self.params.len(),
            "constants of {}",
            self.name
        );
        match &self.code {
            // SAFETY: the table's row has that many constants.
            Code::C(raw) => unsafe { (raw.flags_of)(params.as_ptr().cast()) },
            Code::Dynamic { flags, .. } => *flags,
        }
    }

    /// Size of the state struct; 0 where the code keeps its state itself.
    pub fn state_bytes(&self) -> usize {
        match &self.code {
            Code::C(raw) => raw.state_bytes as usize,
            Code::Dynamic { .. } => 0,
        }
    }
}

/// All algorithms, in the registry's order. Panics if the C code was compiled with other structures than
/// this crate's, and names the first that differs.
pub fn algorithms() -> &'static [Algorithm] {
    static ALL: OnceLock<Vec<Algorithm>> = OnceLock::new();
    ALL.get_or_init(|| {
        let rows = raw_algorithms().iter();
        rows.map(|raw| read_algorithm(raw, None)).collect()
    })
}

/// All parameter sets, in the registry's order.
pub fn sets() -> &'static [Set] {
    static ALL: OnceLock<Vec<Set>> = OnceLock::new();
    ALL.get_or_init(|| raw_sets().iter().map(read_set).collect())
}

/// The algorithm of that name, built in or registered.
pub fn algorithm(name: &str) -> Option<&'static Algorithm> {
    let known = algorithms().iter().find(|algorithm| algorithm.name == name);
    known.or_else(|| registered().iter().copied().find(|item| item.name == name))
}

/// Registers an algorithm that is a trait object. Its own variables are those of `struct cc_info` and
/// `variables`, whose values are real numbers. A name that is already registered keeps its
/// algorithm, which is returned.
pub fn register(
    name: &str,
    title: &str,
    flags: u32,
    params: Vec<Param>,
    variables: Vec<Variable>,
    make: Box<Maker>,
) -> &'static Algorithm {
    algorithm(name).unwrap_or_else(|| {
        add(Algorithm {
            code: Code::Dynamic { flags, make },
            name: name.to_owned().leak(),
            title: title.to_owned().leak(),
            sources: "",
            params,
            variables: info_variables().iter().cloned().chain(variables).collect(),
        })
    })
}

/// Makes an algorithm known by its name for the rest of the program. No other may have the name.
pub(crate) fn add(algorithm: Algorithm) -> &'static Algorithm {
    let algorithm: &'static Algorithm = Box::leak(Box::new(algorithm));
    registered().push(algorithm);
    algorithm
}

fn registered() -> MutexGuard<'static, Vec<&'static Algorithm>> {
    static REGISTERED: Mutex<Vec<&'static Algorithm>> = Mutex::new(Vec::new());
    REGISTERED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The set of that name.
pub fn set(name: &str) -> Option<&'static Set> {
    sets().iter().find(|set| set.name == name)
}

/// `enum cc_phase`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // names of the draft
pub enum Phase {
    None,
    Startup,
    Drain,
    ProbeRtt,
    Up,
    Down,
    Cruise,
    Refill,
    SlowStart,
    Avoidance,
}

impl Phase {
    /// From the C value; unknown values are `None`.
    pub fn from_raw(value: u32) -> Self {
        match value {
            1 => Self::Startup,
            2 => Self::Drain,
            3 => Self::ProbeRtt,
            4 => Self::Up,
            5 => Self::Down,
            6 => Self::Cruise,
            7 => Self::Refill,
            8 => Self::SlowStart,
            9 => Self::Avoidance,
            _ => Self::None,
        }
    }

    /// Name in recordings; empty for `None`.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Startup => "startup",
            Self::Drain => "drain",
            Self::ProbeRtt => "probe_rtt",
            Self::Up => "up",
            Self::Down => "down",
            Self::Cruise => "cruise",
            Self::Refill => "refill",
            Self::SlowStart => "slow_start",
            Self::Avoidance => "avoidance",
        }
    }
}

fn raw_algorithms() -> &'static [abi::Algorithm] {
    layout::check_native();
    // SAFETY: native.c defines an array of exactly that many immutable elements.
    unsafe {
        std::slice::from_raw_parts(
            abi::cc_algorithms.as_ptr(),
            abi::cc_algorithm_count as usize,
        )
    }
}

fn raw_sets() -> &'static [abi::Set] {
    layout::check_native();
    // SAFETY: native.c defines an array of exactly that many immutable elements.
    unsafe { std::slice::from_raw_parts(abi::cc_sets.as_ptr(), abi::cc_set_count as usize) }
}

fn text(pointer: *const c_char) -> &'static str {
    // SAFETY: every text in native.c's tables is a NUL-terminated string literal.
    let text = unsafe { CStr::from_ptr(pointer) };
    text.to_str().expect("texts in cc/ are UTF-8")
}

/// A row of native.h's tables. `name` replaces the row's own name.
pub(crate) fn read_algorithm(raw: &'static abi::Algorithm, name: Option<String>) -> Algorithm {
    // SAFETY: native.c sets param_count to the length of the array behind params.
    let params = unsafe { std::slice::from_raw_parts(raw.params, raw.param_count as usize) };
    // SAFETY: as for params.
    let variables =
        unsafe { std::slice::from_raw_parts(raw.variables, raw.variable_count as usize) };
    Algorithm {
        code: Code::C(raw),
        name: name.map_or_else(|| text(raw.name), |name| name.leak()),
        title: text(raw.title),
        sources: text(raw.sources),
        params: params
            .iter()
            .map(|param| Param {
                name: text(param.name),
                unit: text(param.unit),
                zero: text(param.zero),
                source: text(param.source),
                meaning: text(param.meaning),
                default: param.dflt,
                min: param.min,
                max: param.max,
                scale: param.scale,
                origin: param.origin,
            })
            .collect(),
        variables: variables.iter().map(read_variable).collect(),
    }
}

fn read_variable(raw: &abi::StateInfo) -> Variable {
    Variable::new(text(raw.name), text(raw.unit), text(raw.meaning), raw.scale)
}

/// The variables of `struct cc_info`.
pub(crate) fn info_variables() -> &'static [Variable] {
    static ALL: OnceLock<Vec<Variable>> = OnceLock::new();
    ALL.get_or_init(|| {
        layout::check_native();
        // SAFETY: native.c defines an array of exactly that many immutable elements.
        let raw = unsafe {
            std::slice::from_raw_parts(
                abi::cc_info_variables.as_ptr(),
                abi::cc_info_variable_count as usize,
            )
        };
        raw.iter().map(read_variable).collect()
    })
}

fn read_set(raw: &'static abi::Set) -> Set {
    let name = text(raw.name);
    let algorithm = algorithm(text(raw.algorithm)).expect("a set names a registered algorithm");
    let mut values: Vec<u32> = algorithm.params.iter().map(|param| param.default).collect();
    let mut cursor = raw.overrides;
    // SAFETY: native.c ends every list of overrides with a null name.
    while let Some(change) = unsafe { cursor.as_ref() }.filter(|change| !change.param.is_null()) {
        let param = text(change.param);
        let index = algorithm
            .params
            .iter()
            .position(|known| known.name == param);
        let index = index.unwrap_or_else(|| panic!("set {name} overrides unknown {param}"));
        values[index] = change.value;
        // SAFETY: the list goes on until the null name.
        cursor = unsafe { cursor.add(1) };
    }
    Set {
        name,
        algorithm: algorithm.name,
        kernel_name: text(raw.kernel_name),
        title: text(raw.title),
        values,
    }
}

//! Files (Landlock). Kernels of an older ABI restrict less; what they lack is refused by `calls.rs`:
//! `truncate` (before ABI 3), sockets (before 4), `ioctl` (before 5), signals (before 6).

use std::io;

use landlock::{
    path_beneath_rules, Access, AccessFs, AccessNet, BitFlags, Ruleset, RulesetAttr,
    RulesetCreatedAttr, RulesetError, RulesetStatus, Scope, ABI,
};

use crate::rights::Rights;

/// The newest ABI that this was tested with.
const TESTED: ABI = ABI::V7;

/// Returns whether the kernel restricts this thread.
pub(crate) fn restrict(rights: &Rights) -> io::Result<bool> {
    enforce(rights).map_err(io::Error::other)
}

fn enforce(rights: &Rights) -> Result<bool, RulesetError> {
    let all = AccessFs::from_all(TESTED);
    let read: BitFlags<AccessFs> = AccessFs::ReadFile | AccessFs::ReadDir;
    let status = Ruleset::default()
        .handle_access(all)?
        .handle_access(AccessNet::from_all(TESTED))?
        .scope(Scope::from_all(TESTED))?
        .create()?
        .add_rules(path_beneath_rules(&rights.read, read))?
        .add_rules(path_beneath_rules(&rights.write, all & !AccessFs::Execute))?
        .add_rules(path_beneath_rules(
            &rights.execute,
            read | AccessFs::Execute,
        ))?
        .restrict_self()?;
    Ok(status.ruleset != RulesetStatus::NotEnforced)
}

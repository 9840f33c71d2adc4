//! The kernel verifier's reason in one sentence, with the line of the source. Its whole log has
//! thousands of lines.

/// The reason in a log of libbpf, and the place where it is known; `None`: the log has none.
pub(super) fn reason(log: &str) -> Option<String> {
    let begin = log.rfind("-- BEGIN PROG LOAD LOG --")?;
    let body = &log[begin..];
    let body = &body[..body.find("-- END PROG LOAD LOG --").unwrap_or(body.len())];
    // Behind an infinite loop the log has the two equal states with all registers
    // (kernel/bpf/verifier.c is_state_visited()).
    let lines: Vec<&str> = body
        .lines()
        .skip(1)
        .map(str::trim_end)
        .take_while(|line| *line != "cur state:")
        .collect();
    let told = |line: &str| {
        !line.is_empty()
            && !line.starts_with("processed ")
            && !line.starts_with("verification time")
            && !line.starts_with("stack depth")
            && !line.starts_with("libbpf:")
    };
    let last = lines.iter().rposition(|line| told(line))?;
    let source = lines[..last].iter().rfind(|line| line.starts_with("; "));
    let place = source.map_or_else(String::new, |line| {
        let text = line.trim_start_matches("; ");
        match text.rsplit_once(" @ ") {
            Some((code, place)) => format!("{}: `{}`: ", place.trim(), code.trim()),
            None => format!("`{}`: ", text.trim()),
        }
    });
    Some(format!("{place}{}", lines[last].trim()))
}

#[cfg(test)]
mod tests {
    use super::reason;

    #[test]
    fn the_line_that_the_verifier_stopped_at_is_told_with_its_reason() {
        let log = "libbpf: prog 'fp_cong_avoid': BPF program load failed: -EINVAL\n\
                   libbpf: prog 'fp_cong_avoid': -- BEGIN PROG LOAD LOG --\n\
                   0: R1=ctx() R10=fp0\n\
                   ; while (s->left) @ mine.h:42\n\
                   11: (15) if r1 == 0x0 goto pc+2\n\
                   infinite loop detected at insn 11\n\
                   cur state:\n\
                    R1_w=scalar() R10=fp0\n\
                   old state:\n\
                    R1_w=scalar() R10=fp0\n\
                   processed 24 insns (limit 1000000) max_states_per_insn 4\n\
                   -- END PROG LOAD LOG --\n\
                   libbpf: failed to load object\n";
        assert_eq!(
            reason(log).as_deref(),
            Some("mine.h:42: `while (s->left)`: infinite loop detected at insn 11")
        );
    }

    #[test]
    fn a_log_without_a_program_has_no_reason() {
        assert_eq!(reason("libbpf: map 'fp_ops': failed to create\n"), None);
    }
}

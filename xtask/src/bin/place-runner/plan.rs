//! The place: a file of lines `NAME VALUE`, written by `cargo xtask on` or by hand.

use std::env;
use std::fs;

const VARIABLE: &str = "VDSO_TIME_PLAN";

/// A place. All but the program.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// `qemu`: QEMU and its arguments, one a line. For a kernel, all but the initramfs.
    pub(crate) qemu: Vec<String>,
    /// `init`: where a kernel is booted, its first process, for the architecture of the programs.
    pub(crate) init: Option<String>,
    /// `clock`: the seconds since the Epoch that the wall clock is set to before the programs run.
    pub(crate) clock: Option<i64>,
}

impl Plan {
    /// The plan that the environment names.
    pub(crate) fn read() -> Result<Self, String> {
        let file = env::var(VARIABLE).map_err(|_| format!("{VARIABLE} names no file"))?;
        let text = fs::read_to_string(&file)
            .map_err(|error| format!("{file}: {error}; `cargo xtask on` writes it"))?;
        Self::parse(&text).map_err(|line| format!("{file}: what is `{line}`?"))
    }

    fn parse(text: &str) -> Result<Self, &str> {
        let mut plan = Self::default();
        for line in text.lines() {
            let (name, value) = line.split_once(' ').ok_or(line)?;
            match name {
                "qemu" => plan.qemu.push(value.into()),
                "init" => plan.init = Some(value.into()),
                "clock" => plan.clock = Some(value.parse().map_err(|_| line)?),
                _ => return Err(line),
            }
        }
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::Plan;

    #[test]
    fn a_plan_is_lines_of_a_name_and_a_value() {
        let plan = Plan::parse("qemu /q\nqemu -append\nqemu a b=c\ninit /i\nclock -5\n");
        let qemu = ["/q", "-append", "a b=c"].map(String::from).into();
        assert_eq!(plan, Ok(Plan { qemu, init: Some("/i".into()), clock: Some(-5) }));
        assert_eq!(Plan::parse("kernel /k"), Err("kernel /k"));
        assert_eq!(Plan::parse("clock now"), Err("clock now"));
    }
}

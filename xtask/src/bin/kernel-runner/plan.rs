//! What to boot: a file of lines `NAME VALUE`, written by `cargo xtask on` or by hand.

use std::fs;

/// A guest. All but the program.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Plan {
    /// `qemu`: QEMU and its arguments, one a line, all but the initramfs.
    pub(crate) qemu: Vec<String>,
    /// `init`: the guest's first process, for the architecture of the programs.
    pub(crate) init: String,
    /// `clock`: the seconds since the Epoch that the wall clock is set to before the programs run.
    pub(crate) clock: Option<i64>,
}

impl Plan {
    pub(crate) fn read(file: &str) -> Result<Self, String> {
        let text = fs::read_to_string(file)
            .map_err(|error| format!("{file}: {error}; `cargo xtask on` writes it, for a kernel"))?;
        Self::parse(&text).map_err(|line| format!("{file}: what is `{line}`?"))
    }

    fn parse(text: &str) -> Result<Self, &str> {
        let mut plan = Self::default();
        for line in text.lines() {
            let (name, value) = line.split_once(' ').ok_or(line)?;
            match name {
                "qemu" => plan.qemu.push(value.into()),
                "init" => plan.init = value.into(),
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
    fn lines() {
        let plan = Plan::parse("qemu /q\nqemu -append\nqemu a b=c\ninit /i\nclock -5\n");
        let qemu = ["/q", "-append", "a b=c"].map(String::from).into();
        assert_eq!(plan, Ok(Plan { qemu, init: "/i".into(), clock: Some(-5) }));
        assert_eq!(Plan::parse("kernel /k"), Err("kernel /k"));
        assert_eq!(Plan::parse("clock now"), Err("clock now"));
    }
}

//! What is printed for a person, as it goes.

use std::env::{self, consts::ARCH};
use std::io::{self, IsTerminal as _, Write};

use vdso_time::arch::NATIVE;
use vdso_time::elf::HashTables;
use vdso_time::vdso::{LocateError, Vdso};
use vdso_time::{Routes, Timespec, clock_getres};

use super::machine::{Machine, Reader, clock_source};
use super::proof::{Evidence, Finding, Method, Place, READS};
use super::read::Read;
use super::timing::Speed;
use super::verdict::Cause;

/// Everything that was found out.
pub(crate) struct Report<'a> {
    pub(crate) machine: &'a Machine,
    pub(crate) image: Result<Image<'a>, LocateError>,
    pub(crate) routes: &'a Routes,
    pub(crate) method: Option<Method>,
    pub(crate) cpus: Vec<usize>,
    pub(crate) rows: Vec<Row>,
    pub(crate) verdict: (Cause, String),
}

/// The vDSO, and where its address came from.
pub(crate) struct Image<'a> {
    pub(crate) vdso: Vdso<'a>,
    pub(crate) source: &'static str,
    pub(crate) hash_tables: HashTables,
    pub(crate) versions: Vec<String>,
}

impl<'a> Image<'a> {
    pub(crate) fn new(vdso: Vdso<'a>) -> Self {
        let mut versions: Vec<_> =
            vdso.symbols().filter_map(|s| Some(s.version()?.to_string_lossy().into_owned())).collect();
        versions.sort_unstable();
        versions.dedup();
        let source =
            if cfg!(feature = "libc") { "getauxval(AT_SYSINFO_EHDR)" } else { "the auxiliary vector" };
        Self { vdso, source, hash_tables: vdso.image().hash_tables(), versions }
    }
}

/// One read, and what was found out about it.
pub(crate) struct Row {
    pub(crate) read: Read,
    pub(crate) finding: Finding,
    pub(crate) speed: Option<Speed>,
    pub(crate) resolution: Option<i64>,
}

impl Row {
    pub(crate) fn new(read: Read, finding: Finding, speed: Option<Speed>) -> Self {
        let resolution = match (read, finding.evidence) {
            (_, Evidence::Refused(_)) => None,
            (Read::ClockGettime(clock), _) => clock_getres(clock).ok().map(Timespec::as_nanos),
            _ => None,
        };
        Self { read, finding, speed, resolution }
    }
}

/// Where the report goes, and whether it has colours.
pub(crate) struct Page {
    colours: bool,
    out: io::StdoutLock<'static>,
}

const RED: &str = "31";
const GREEN: &str = "32";
const YELLOW: &str = "33";
const BOLD: &str = "1";

impl Page {
    pub(crate) fn new() -> Self {
        let colours = io::stdout().is_terminal() && env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
        Self { colours, out: io::stdout().lock() }
    }

    fn coloured(&self, colour: &str, text: &str) -> String {
        if self.colours { format!("\x1b[{colour}m{text}\x1b[0m") } else { text.into() }
    }

    fn heading(&mut self, text: &str) -> io::Result<()> {
        let text = self.coloured(BOLD, text);
        writeln!(self.out, "{text}")
    }

    /// Where the vDSO is, and what is in it.
    pub(crate) fn image(
        &mut self,
        machine: &Machine,
        image: Result<&Image<'_>, &LocateError>,
    ) -> io::Result<()> {
        self.heading("vDSO")?;
        let under = machine.supervisor.map_or(String::new(), |who| format!(", under {}", who.name()));
        writeln!(self.out, "  of Linux {}, for {ARCH}{under}", machine.release)?;
        let image = match image {
            Ok(image) => image,
            Err(error) => return writeln!(self.out, "  none: {error}\n"),
        };
        let vdso = image.vdso;
        let tables = match image.hash_tables {
            HashTables { sysv: true, gnu: true, .. } => "DT_HASH and DT_GNU_HASH",
            HashTables { sysv: true, .. } => "DT_HASH",
            HashTables { gnu: true, .. } => "DT_GNU_HASH",
            _ => "no hash table",
        };
        let bits = 32 * u32::from(vdso.image().class());
        let versions = image.versions.join(", ");
        writeln!(self.out, "  at {:p}, by {}", vdso.base(), image.source)?;
        writeln!(self.out, "  ELF{bits}, {} bytes, {tables}, versions: {versions}", vdso.size())?;
        for symbol in vdso.symbols() {
            let name = match symbol.name().to_string_lossy() {
                name if name.is_empty() => "(blanked)".into(),
                name => name,
            };
            let version = symbol.version().map_or(String::new(), |v| format!("@{}", v.to_string_lossy()));
            let weak = if symbol.is_weak() { ", weak" } else { "" };
            let (address, size) = (vdso.address(&symbol), symbol.size());
            writeln!(self.out, "  {address:p} {name}{version}, {size} bytes{weak}")?;
        }
        writeln!(self.out)
    }

    /// Who answers.
    pub(crate) fn routes(&mut self, routes: &Routes) -> io::Result<()> {
        self.heading("routes")?;
        for line in routes.to_string().lines() {
            writeln!(self.out, "  {line}")?;
        }
        writeln!(self.out)
    }

    /// The clock source, and the others.
    pub(crate) fn clock_source(&mut self, machine: &Machine) -> io::Result<()> {
        self.heading("clock source")?;
        let Some(current) = &machine.clock_source else {
            return writeln!(self.out, "  unknown: sysfs is not mounted\n");
        };
        let (reader, what) = clock_source(current);
        let reader = match reader {
            Reader::Anyone => "the vDSO can read it",
            Reader::AnyoneIfStable => {
                "the vDSO can read it if the hypervisor says it is the same on all CPUs"
            }
            Reader::Kernel => "only the kernel can read it",
            Reader::Unknown => "the vDSO can probably not read it",
        };
        writeln!(self.out, "  {current}: {what}; {reader}")?;
        writeln!(self.out, "  available: {}\n", machine.available.join(", "))
    }

    /// How it is found out where a read is answered, above the reads.
    pub(crate) fn method(&mut self, method: Option<Method>, cpus: usize, has_watch: bool) -> io::Result<()> {
        self.heading("reads")?;
        let all = match cpus {
            0 => "whichever CPUs this thread, which cannot be moved, ran on".into(),
            1 => "1 CPU".into(),
            _ => format!("each of {cpus} CPUs"),
        };
        let proved = format!("proved for these reads, now: {READS} of each on {all}");
        match method {
            None if NATIVE.is_none() => {
                writeln!(self.out, "  libc answers each of them; the doctor cannot tell where")?;
            }
            None => writeln!(self.out, "  without a vDSO each of them is a system call")?,
            Some(Method::Dispatch) => writeln!(self.out, "  {proved}, under Syscall User Dispatch")?,
            Some(Method::Seccomp) => {
                writeln!(
                    self.out,
                    "  {proved}, in a child process whose clock calls a seccomp filter refuses"
                )?;
            }
            Some(Method::Timing) => writeln!(self.out, "  judged by the time they take, which is no proof")?,
        }
        if !has_watch {
            writeln!(self.out, "  no clock here is fine enough to time them")?;
        }
        writeln!(
            self.out,
            "  {:42} {:19} {:>11} {:>9} {:>11} {:>6}",
            "", "answered in", "resolution", "ns/read", "system call", "ratio"
        )
    }

    /// One line for each read.
    pub(crate) fn row(&mut self, row: &Row) -> io::Result<()> {
        let (colour, place) = place(row.finding);
        let place = self.coloured(colour, &format!("{place:19}"));
        let resolution = row.resolution.map_or(String::new(), duration);
        let here = row.speed.map_or(String::new(), |speed| format!("{:.1}", speed.here));
        let system_call = row.speed.and_then(|speed| speed.system_call);
        let ratio = row.speed.and_then(Speed::ratio);
        let [system_call, ratio] =
            [system_call.map(|nanos| format!("{nanos:.1}")), ratio.map(|r| format!("{r:.3}"))]
                .map(Option::unwrap_or_default);
        let line =
            format!("  {:42} {place} {resolution:>11} {here:>9} {system_call:>11} {ratio:>6}", row.read);
        writeln!(self.out, "{}", line.trim_end())
    }

    /// The three ways to the seconds.
    pub(crate) fn seconds(&mut self, rows: &[Row]) -> io::Result<()> {
        let speed = |read| rows.iter().find(|row| row.read == read)?.speed;
        if let (Some(time), Some(gettimeofday)) = (speed(Read::Time), speed(Read::Gettimeofday)) {
            if let Some(call) = time.system_call {
                let [one, two, three] = [time.here, gettimeofday.here, call];
                writeln!(
                    self.out,
                    "\n  time() : gettimeofday() : time by system call = {one:.1} : {two:.1} : {three:.1} ns = 1 : {:.1} : {:.1}",
                    two / one,
                    three / one
                )?;
            }
        }
        writeln!(self.out)
    }

    /// The verdict.
    pub(crate) fn verdict(&mut self, (cause, sentence): &(Cause, String)) -> io::Result<()> {
        let colour = match cause {
            Cause::Fine => GREEN,
            Cause::LikelyFine
            | Cause::Slow
            | Cause::CannotTell
            | Cause::HiddenByValgrind
            | Cause::Emulated
            | Cause::Libc => YELLOW,
            _ => RED,
        };
        self.heading("verdict")?;
        let sentence = self.coloured(colour, sentence);
        writeln!(self.out, "  {sentence}")
    }

    /// Text as it is.
    pub(crate) fn text(&mut self, text: &str) -> io::Result<()> {
        writeln!(self.out, "{text}")
    }
}

/// In the largest unit that it is a whole number of.
fn duration(nanos: i64) -> String {
    let units = [(1_000_000_000, "s"), (1_000_000, "ms"), (1000, "µs")];
    let unit = units.into_iter().find(|(size, _)| nanos > 0 && nanos % size == 0).unwrap_or((1, "ns"));
    format!("{} {}", nanos / unit.0, unit.1)
}

fn place(finding: Finding) -> (&'static str, String) {
    let (colour, place) = match finding.place {
        Place::UserSpace => (GREEN, "user space"),
        Place::Kernel => (RED, "kernel"),
        Place::Unknown => (YELLOW, "unknown"),
    };
    match finding.evidence {
        Evidence::Refused(error) => ("0", format!("refused, {error}")),
        Evidence::Likely => (YELLOW, format!("{place}, likely")),
        Evidence::Proved(count) if count.outside > 0 => (colour, format!("{place}, not by vDSO")),
        Evidence::Proved(count) if count.entered != 0 && count.entered != count.reads => {
            (colour, format!("{place}, {} of {}", count.entered, count.reads))
        }
        _ => (colour, place.into()),
    }
}

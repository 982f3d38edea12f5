//! The report as a table.

use super::comparison;
use crate::report::{Amounts, Comparison, Process, Report, Row};
use crate::text::{estimate, number, shortened, times, wrapped};

/// The maximum number of processes in a table, and of callers of each process. They apply if there
/// is more than one process, or if the rows are threads.
const MOST_PROCESSES: usize = 20;
const MOST_CALLERS: usize = 5;

/// The minimum width of the column of names.
const MIN_WIDTH: usize = 24;

/// The table has fewer columns of numbers on a terminal that is narrower than this.
const NARROW: usize = 60;

/// Returns the table for a terminal with this many columns.
pub(crate) fn text(report: &Report, columns: usize) -> String {
    if let Some(comparison) = &report.comparison {
        return comparison_text(report, comparison, columns);
    }
    let mut table = Table {
        report,
        is_narrow: columns < NARROW,
        width: 0,
        lines: Vec::new(),
    };
    let title = table.title();
    table.width = columns.saturating_sub(title.len()).max(MIN_WIDTH);
    table.lines.push(wrapped(&verdict(report), columns));
    let is_quiet = report.is_interval && report.whole.records == 0;
    if !is_quiet {
        if !report.processes.is_empty() {
            table.lines.push(String::new());
            table.lines.push(format!("{title}process, caller"));
            table.rows(title.len());
        }
        for note in notes(report) {
            table.lines.push(String::new());
            table.lines.push(wrapped(&note, columns));
        }
    }
    table.lines.join("\n") + "\n"
}

/// Returns the table that compares a report with an earlier one.
fn comparison_text(report: &Report, compared: &Comparison, columns: usize) -> String {
    let mut lines = Vec::new();
    lines.push(wrapped(&verdict(report), columns));
    lines.push(wrapped(&comparison::verdict(compared), columns));
    if !compared.processes.is_empty() {
        let width = columns.saturating_sub(comparison::TITLE.len());
        lines.push(format!("\n{}process, caller", comparison::TITLE));
        lines.extend(comparison::rows(compared, width.max(MIN_WIDTH)));
    }
    for note in notes(report) {
        lines.push(format!("\n{}", wrapped(&note, columns)));
    }
    lines.join("\n") + "\n"
}

struct Table<'a> {
    report: &'a Report,
    is_narrow: bool,
    /// The width of the column of names.
    width: usize,
    lines: Vec<String>,
}

impl Table<'_> {
    /// Returns the titles of the columns of numbers.
    fn title(&self) -> &'static str {
        if self.report.is_exact() {
            "      reads  "
        } else if self.is_narrow {
            "  % own     +-  "
        } else {
            " samples   % own     +-   reads/s  calls  "
        }
    }

    /// Returns the columns of numbers of a row.
    fn cells(&self, amounts: &Amounts) -> String {
        if self.report.is_exact() {
            let reads = match amounts.reads {
                Some(reads) => reads.to_string(),
                None => format!(">= {}", amounts.records),
            };
            return format!("{reads:>11}  ");
        }
        let percent = cell(amounts.percent, number);
        let error = cell(amounts.percent_error, number);
        if self.is_narrow {
            return format!("{percent:>7} {error:>6}  ");
        }
        let rate = cell(amounts.reads_per_second, estimate);
        let calls = cell(amounts.system_call_percent, |percent| {
            format!("{percent:.0} %")
        });
        format!(
            "{:>8} {percent:>7} {error:>6} {rate:>9} {calls:>6}  ",
            amounts.records
        )
    }

    /// Adds the processes, each with its callers.
    fn rows(&mut self, indent: usize) {
        let report = self.report;
        let mut processes = usize::MAX;
        let mut callers = usize::MAX;
        if report.has_others || report.is_by_thread() {
            processes = MOST_PROCESSES;
            callers = MOST_CALLERS;
        }
        let mut is_cut = report.processes.len() > processes;
        for process in report.processes.iter().take(processes) {
            let mut cells = self.cells(&process.amounts);
            for text in name_lines(process, self.width) {
                self.lines.push(cells + &fitted(&text, self.width));
                cells = " ".repeat(indent);
            }
            is_cut |= process.callers.len() > callers;
            for row in process.callers.iter().take(callers) {
                self.caller(row, indent);
            }
        }
        if is_cut {
            self.lines
                .push(format!("{:indent$}... (--json has all)", ""));
        }
    }

    /// Adds the lines of a caller.
    fn caller(&mut self, row: &Row, indent: usize) {
        let width = self.width - 2;
        let mut cells = self.cells(&row.amounts);
        for text in caller_lines(row, width) {
            self.lines
                .push(format!("{cells}  {}", fitted(&text, width)));
            cells = " ".repeat(indent);
        }
    }
}

/// Returns a number, or `-` if it is not known.
pub(super) fn cell(value: Option<f64>, format: fn(f64) -> String) -> String {
    match value {
        Some(value) => format(value),
        None => "-".into(),
    }
}

/// Shortens a name until it fits, and escapes the characters that a terminal would obey.
pub(super) fn fitted(text: &str, width: usize) -> String {
    shortened(&text.escape_debug().to_string(), width)
}

/// Returns the lines of the name of a row. The name of a thread has a second line for the process
/// of the thread, unless both fit into one line.
fn name_lines(process: &Process, width: usize) -> Vec<String> {
    let name = &process.name;
    let (Some(pid), Some(thread)) = (process.pid, process.thread) else {
        return vec![name_of_processes(process)];
    };
    let mut of = match &process.process_name {
        Some(process_name) => format!("of {process_name} {pid}"),
        None => format!("of {pid}"),
    };
    let short = match &process.unit {
        Some(unit) => format!("{name} (thread {thread} {of}), {unit}"),
        None => format!("{name} (thread {thread} {of})"),
    };
    if short.chars().count() <= width {
        return vec![short];
    }
    if let Some(unit) = &process.unit {
        of = format!("{of}, {unit}");
    }
    vec![format!("{name} (thread {thread})"), of]
}

/// Returns the name of a row of processes.
fn name_of_processes(process: &Process) -> String {
    let which = match process.pid {
        Some(pid) => pid.to_string(),
        // These processes have no ids here.
        None if process.count == 0 => return process.name.clone(),
        None => format!("{} processes", process.count),
    };
    match &process.unit {
        Some(unit) => format!("{} ({which}), {unit}", process.name),
        None => format!("{} ({which})", process.name),
    }
}

/// Returns the lines of a table row. The function comes first, with its location in the same line
/// if that fits, otherwise in the next line. Then come the callers of the function. If nearly all
/// records whose clock is known are of one clock, the last line is that clock.
fn caller_lines(row: &Row, width: usize) -> Vec<String> {
    let frame = &row.frame;
    let location = match (&frame.file, frame.line) {
        (Some(file), Some(line)) => format!("{file}:{line}"),
        (Some(file), None) => file.clone(),
        (None, _) => frame.module.clone(),
    };
    let name = location.rsplit('/').next().unwrap_or_default();
    let short = format!("{}  {name}", frame.function);
    let mut lines = Vec::new();
    if short.chars().count() <= width {
        lines.push(short.trim_end().to_owned());
    } else {
        lines.push(frame.function.clone());
        lines.push(location);
    }
    let next = row.called_by.iter();
    for caller in next.chain(&row.outer_callers).chain(&row.named_caller) {
        lines.push(format!("in {}", caller.function));
    }
    if let Some(clock) = row.amounts.clock() {
        lines.push(format!("for {}", clock.name()));
    }
    lines.retain(|line| !line.is_empty());
    lines
}

/// Returns the sentence with which a report begins.
pub(super) fn verdict(report: &Report) -> String {
    let subject = subject(report);
    let seconds = report.seconds;
    let cpu = report.cpu_seconds;
    if let Some(reads) = report.whole.reads {
        return match reads {
            0 => format!("{subject} read no clock."),
            _ => match report.whole.clock() {
                Some(clock) => {
                    let name = clock.name();
                    format!(
                        "{subject} read clocks {}, nearly always {name}.",
                        times(reads)
                    )
                }
                None => format!("{subject} read clocks {}.", times(reads)),
            },
        };
    }
    if report.whole.percent.is_some() {
        return share(report, &subject);
    }
    if report.unknown.sandboxed > 0 {
        return format!(
            "{subject} used {cpu:.2} s of CPU time in a gVisor sandbox. Its clock reads cannot be seen from \
             outside the sandbox, so no share is known."
        );
    }
    if report.samples > 0 {
        let sampled = report.samples as f64 / f64::from(report.frequency);
        let period = 1e3 / f64::from(report.frequency);
        return format!(
            "{subject} used {cpu:.2} s of CPU time in user space, but the samples account for {sampled:.2} s, so no \
             share is known: run vdso-who as root or with CAP_PERFMON, so that it also sees setuid programs and threads \
             that live for less than {period:.1} ms."
        );
    }
    if cpu < 0.01 {
        return format!("{subject} used no CPU time in {seconds:.1} s.");
    }
    format!(
        "{subject} used {cpu:.2} s of CPU time, but no sample was taken, so no share is known: use a longer \
         --duration or a higher --frequency."
    )
}

/// Returns what was watched.
fn subject(report: &Report) -> String {
    let name = report.name.escape_debug();
    match report.pid {
        Some(pid) if report.has_others => {
            format!("process {pid} ({name}) and its descendants")
        }
        Some(pid) => format!("process {pid} ({name})"),
        None if report.name.is_empty() => "all processes".into(),
        None => format!("the processes of {name}"),
    }
}

/// Returns the sentence about a share.
fn share(report: &Report, subject: &str) -> String {
    let whole = &report.whole;
    let share = number(whole.percent.unwrap_or(0.0));
    let error = number(whole.percent_error.unwrap_or(0.0));
    let own = if report.system_wide {
        "CPU time"
    } else {
        "CPU time in user space"
    };
    let spends = if report.has_others { "spend" } else { "spends" };
    let its = if report.has_others { "their" } else { "its" };
    let rate = match whole.reads_per_second {
        Some(rate) if rate > 0.0 => format!(
            ": about {} reads/s (accurate to within a factor of 2)",
            estimate(rate)
        ),
        _ => String::new(),
    };
    let location = where_answered(report);
    format!(
        "{subject} {spends} {share} % +-{error} % of {its} {own} reading clocks{location}{rate}."
    )
}

/// Returns what part of the reads is in system calls, and for which clock. Returns an empty string
/// if that part is less than 10 %, or if it is not known.
fn where_answered(report: &Report) -> String {
    let Some(calls) = report.whole.system_call_percent else {
        return String::new();
    };
    let part = match calls {
        90.0.. => "nearly all in system calls".into(),
        10.0.. => format!("{calls:.0} % of it in system calls"),
        _ => return String::new(),
    };
    match report.whole.clock() {
        Some(clock) if clock.is_in_no_vdso() => {
            format!(", {part} for {}, which no vDSO reads", clock.name())
        }
        Some(clock) => format!(", {part} for {}", clock.name()),
        None => format!(", {part}"),
    }
}

/// Returns the notes that a reader needs to judge the figures.
fn notes(report: &Report) -> Vec<String> {
    let mut notes = Vec::new();
    if !report.has_vdso && report.unknown.sandboxed == 0 {
        notes.push(match report.boot_parameter {
            Some(parameter) => format!(
                "The process has no vDSO, so each clock read is a system call: boot without {parameter}."
            ),
            None => "The process has no vDSO, so each clock read is a system call.".into(),
        });
    }
    match &report.comparison {
        Some(compared) => notes.push(comparison::figures(report, compared)),
        None => notes.push(figures(report)),
    }
    if report.is_slow() && !report.is_exact() {
        notes
            .push("These clock reads are slow: `vdso-doctor` explains why, and what to do.".into());
    }
    if report.swallowed != 0 {
        let swallowed = times(report.swallowed);
        notes.push(format!(
            "A breakpoint raised SIGTRAP {swallowed}, which vdso-who did not pass on to the command."
        ));
    }
    if report.lost != 0 {
        let bound = if report.is_exact() {
            "so the reads of a caller are a lower bound"
        } else {
            "and `+-` allows for that"
        };
        notes.push(format!(
            "vdso-who got too little CPU time and lost {} records, {bound}. Run it with `nice -n -10`, as \
             root.",
            report.lost
        ));
    }
    if let Some(pid) = report.stale_map {
        notes.push(format!(
            "The perf map of process {pid} is older than the process, so it belongs to an earlier process and \
             is not used. Remove that file."
        ));
    }
    unknown_samples(report, &mut notes);
    if !report.system_wide && !report.is_exact() {
        notes.push(
            "vdso-who cannot see the time in system calls: run vdso-who as root or with CAP_PERFMON."
                .into(),
        );
    }
    notes
}

/// Adds notes about the samples that are unknown or missing, which make `+-` larger. Leaves out
/// unread processes and unknown system calls if they are at most a hundredth of all samples.
fn unknown_samples(report: &Report, notes: &mut Vec<String>) {
    let is_much = |samples: u64| samples * 100 > report.samples;
    let unknown = report.unknown;
    if is_much(unknown.unread) {
        notes.push(format!(
            "{} samples come from processes that exited or could not be read. `+-` allows for that. Root with \
             CAP_SYS_PTRACE, outside of any container, can read all processes.",
            unknown.unread
        ));
    }
    if unknown.foreign > 0 {
        notes.push(format!(
            "{} samples come from processes of other PID namespaces, which cannot be read from here. `+-` allows for \
             that. Run vdso-who on the host, or with `docker run --pid=host`.",
            unknown.foreign
        ));
    }
    if unknown.sandboxed > 0 {
        notes.push(format!(
            "{} samples come from processes in a gVisor sandbox, whose clock reads cannot be seen from outside.",
            unknown.sandboxed
        ));
    }
    if !report.unwatched.is_zero() {
        notes.push(format!(
            "CPUs that came online during the measurement were not watched for {:.2} s. `+-` allows for that.",
            report.unwatched.as_secs_f64()
        ));
    }
    if report.system_wide && report.unseen() > 0.0 {
        let sampled = (report.samples + report.lost) as f64 / f64::from(report.frequency);
        notes.push(format!(
            "The samples account for only {sampled:.2} s of the CPU time. `+-` allows for that. The reason can be a CPU \
             that went offline, a suspend, or a limit of the kernel (kernel.perf_event_max_sample_rate).",
        ));
    }
    if is_much(unknown.calls) {
        notes.push(format!(
            "{} samples are in unknown system calls. `+-` allows for that. If kernel.kptr_restrict is at \
             most 1, root with CAP_SYSLOG can identify more of them, because it can read /proc/kallsyms.",
            unknown.calls
        ));
    }
}

/// Explains the columns.
fn figures(report: &Report) -> String {
    let samples = report.samples;
    let seconds = report.seconds;
    match report.trap_ns {
        Some(trap) => format!(
            "{samples} records in {seconds:.1} s; a counted read costs {:.1} us.",
            trap as f64 / 1e3
        ),
        None => format!(
            "{samples} samples, {:.2} s of CPU time in {seconds:.1} s. `% own`: share of that {}'s own CPU time; \
             `+-`: the largest error with 95 % confidence, samples that may be reads included; `reads/s`: {}; \
             `calls`: share of the reads that are system calls.",
            report.cpu_seconds,
            if report.is_by_thread() {
                "thread"
            } else {
                "process"
            },
            rate(report)
        ),
    }
}

/// Explains the column `reads/s`.
fn rate(report: &Report) -> String {
    if report.read_ns <= 0.0 {
        return "`-`, because the clock advances too rarely to measure the cost of a read".into();
    }
    let cost = format!("a vDSO read here, {:.0} ns", report.read_ns);
    if report.is_slow() && !report.system_wide {
        return format!(
            "`-`, because most of the cost of {cost}, is time in the kernel, which vdso-who cannot see"
        );
    }
    if report.is_slow() {
        return format!("that share divided by the cost of {cost}");
    }
    format!(
        "that share divided by the cost of {cost}, and `-` if most reads are system calls, which cost more"
    )
}

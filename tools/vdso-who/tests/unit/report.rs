//! Tests of the figures, the lines and the names in a report.

use std::sync::Arc;

use super::*;
use crate::address_space::Caller;
use crate::arguments::arguments;
use crate::output::table;
use crate::perf::{Event, Registers, Sample};
use crate::progress::Progress;
use crate::tally::{Message, count, of_folded};
use crate::text::{COLUMNS, estimate, shortened};

/// Returns findings about processes. Each has an id, a number of samples, and how many of them are
/// in clock reads.
fn found(processes: &[(u32, u64, u64)]) -> Findings {
    let mut found = Findings {
        has_vdso: true,
        ..Findings::default()
    };
    for (pid, samples, reads) in processes.iter().copied() {
        let key = Key {
            name: "a".into(),
            pid: Some(pid),
            ..Key::default()
        };
        let counts = Counts {
            records: reads,
            ..Counts::default()
        };
        let callers = [(Caller::unknown(), counts)].into();
        found.groups.insert(
            key,
            Group {
                samples,
                pids: [pid].into(),
                callers,
                ..Group::default()
            },
        );
        found.samples += samples;
        found.reads += reads;
    }
    found
}

/// Reports a sample of a process that does not exist, because no process can have this id.
#[test]
#[expect(clippy::too_many_lines, reason = "a sample has many fields")]
fn a_process_that_cannot_be_read_has_no_share_that_looks_right() {
    let (is_64_bit, registers) = (
        true,
        Registers {
            pc: 1,
            ..Registers::default()
        },
    );
    let (pid, in_kernel, number) = ((1 << 22) + 1, false, None);
    let taken = || Sample {
        pid,
        thread: pid,
        in_kernel,
        is_64_bit,
        registers,
        number,
        first_argument: None,
        stack: vec![],
        callchain: vec![],
        kernel_chain: vec![],
    };
    let host = arguments("--all");
    let found = || {
        let sample = Message::Event(Event::Sample(Box::new(taken())));
        count(&host, None, [sample], &Arc::default())
    };
    let mut report = Report {
        seconds: 1.0,
        cpu_seconds: 0.002,
        system_wide: true,
        ..Report::new(&host, None, None)
    };
    report.finish(found());
    let text = table::text(&report, COLUMNS);
    assert!(
        text.contains("spend 0.00 % +-100 % of") && text.contains("CAP_SYS_PTRACE"),
        "{text}"
    );
    // Adds a sample of another process with the same name. This process can be read, and the sample
    // is in a clock read.
    let mut found = found();
    let group = found.groups.values_mut().next().unwrap();
    let caller = Caller {
        first: Arc::new(Frame::unknown("caller".into(), "module")),
        next: None,
        outer: vec![],
        named: None,
    };
    group.samples = 2;
    group.callers.insert(
        caller,
        Counts {
            records: 1,
            ..Counts::default()
        },
    );
    (found.samples, found.reads) = (2, 1);
    report.cpu_seconds = 0.004;
    report.finish(found);
    let Process {
        amounts, callers, ..
    } = &report.processes[0];
    for Amounts {
        percent,
        percent_error,
        ..
    } in [amounts, &callers[0].amounts]
    {
        assert!(
            *percent == Some(50.0) && percent_error.is_some_and(|error| error > 80.0),
            "{report:?}"
        );
    }
}

/// Prints the table for terminals of 40 to 200 columns.
#[test]
fn a_table_fits_its_terminal_and_an_interval_without_reads_is_one_sentence() {
    let host = arguments("--all");
    let mut report = Report::new(&host, None, None);
    report.system_wide = true;
    report.finish(found(&[(1, 100, 50), (2, 10, 0)]));
    for columns in [40, 50, 60, 80, 200] {
        let text = table::text(&report, columns);
        let fits = text.lines().all(|line| line.chars().count() <= columns);
        assert!(fits && text.contains("[unknown]"), "{columns}: {text}");
        let words: Vec<_> = text.split_whitespace().collect();
        let has_sentence = words
            .join(" ")
            .contains("% of their CPU time reading clocks.");
        assert!(has_sentence, "{columns}: {text}");
    }
    report.finish(found(&[(1, 100, 0)]));
    assert!(table::text(&report, 80).contains(" a (1)"));
    report.is_interval = true;
    let text = table::text(&report, 80);
    assert_eq!(text.lines().count(), 1, "{text}");
}

/// Reports many processes with the same name, like the processes of a server that starts a worker
/// for each query.
#[test]
fn most_processes_of_one_name_share_a_row() {
    for (line, rows) in [("--pid=1", 4), ("--pid=1 --group-by=process", 8)] {
        let options = arguments(line);
        let mut report = Report {
            seconds: 1.0,
            system_wide: true,
            ..Report::new(&options, Some(1), None)
        };
        let samples = [
            (1, 0),
            (2, 10),
            (3, 50),
            (4, 1),
            (5, 20),
            (6, 30),
            (7, 2),
            (8, 3),
            (9, 60),
        ];
        let mut found = found(&samples.map(|(pid, samples)| (pid, samples, samples)));
        if rows == 4 {
            found.merge(3);
        }
        report.finish(found);
        let sum: u64 = report
            .processes
            .iter()
            .map(|process| process.amounts.records)
            .sum();
        assert_eq!((report.processes.len(), sum), (rows, 176), "{report:?}");
        let shared = report
            .processes
            .iter()
            .find(|process| process.pid.is_none());
        let shared = shared.map(|process| (process.count, process.amounts.records));
        // All processes but 9, 3 and 6, which have the most samples.
        assert_eq!(shared, (rows == 4).then_some((6, 36)), "{report:?}");
    }
    for (more, is_cut) in [(0, false), (1, true)] {
        let host = arguments("--all");
        let mut report = Report::new(&host, None, None);
        report.finish(found(&[(1, 1, 1)]));
        report.processes = vec![report.processes[0].clone(); 20 + more];
        let text = table::text(&report, COLUMNS);
        assert_eq!(text.contains("(--json has all)"), is_cut, "{text}");
    }
}

/// Some or all of the reads are system calls. If most of them are, and a read in the vDSO takes 20
/// ns, the rate cannot be computed from that cost. If a read through the vDSO takes 1000 ns, it
/// enters the kernel as well, so the rate can be computed.
#[test]
fn a_rate_of_reads_in_the_kernel_is_not_computed_from_the_cost_of_the_vdso() {
    for (read_ns, in_kernel, system_wide, rate) in [
        (20.0, 50, true, Some(1e7)),
        (20.0, 51, true, None),
        (20.0, 100, true, None),
        (1000.0, 100, true, Some(2e5)),
        // Without privileges, the CPU time and the samples are of user space only, but a slow read
        // takes most of its time in the kernel.
        (20.0, 0, false, Some(1e7)),
        (1000.0, 0, false, None),
        // The cost could not be measured.
        (0.0, 0, true, None),
    ] {
        let options = arguments("--pid=1");
        let (seconds, cpu_seconds) = (1.0, 0.4);
        let report = Report {
            system_wide,
            seconds,
            cpu_seconds,
            read_ns,
            ..Report::new(&options, Some(1), None)
        };
        let (mut report, mut found) = (report, found(&[(1, 200, 100)]));
        let group = found.groups.values_mut().next().unwrap();
        group.callers.values_mut().next().unwrap().calls = in_kernel;
        report.finish(found);
        let Process {
            amounts, callers, ..
        } = &report.processes[0];
        for amounts in [&report.whole, amounts, &callers[0].amounts] {
            assert_eq!(amounts.reads_per_second, rate, "{report:?}");
        }
    }
}

/// Compares the number of samples, at 499 Hz, with the CPU time.
#[test]
#[expect(clippy::too_many_lines, reason = "a table, and what all its rows have")]
fn a_share_is_refused_only_without_rights_or_samples() {
    for (system_wide, samples, cpu_seconds, lost, expected) in [
        (true, 250, 0.5, 0, Some("spends 10.0 % +-4.")),
        // 90 % of the CPU time has no samples. After the tolerance for chance and for the kernel's
        // clocks, 79 % remain.
        (true, 250, 5.0, 0, Some("spends 10.0 % +-82.")),
        (true, 250, 0.0, 0, Some("spends 10.0 % +-4.")),
        // Half of the records are lost, and any of these may be in a read.
        (true, 250, 0.5, 250, Some("spends 10.0 % +-54.")),
        (true, 10, 0.02, 0, Some("spends 10.0 % +-30.")),
        (true, 10, 0.5, 0, Some("spends 10.0 % +-98.")),
        (true, 0, 0.5, 0, None),
        (false, 250, 0.5, 0, Some("spends 10.0 % +-4.")),
        (false, 190, 0.5, 0, Some("spends 10.0 % +-")),
        (false, 165, 0.5, 0, None),
        // The kernel may count no tick for a process that did little.
        (false, 9, 0.0, 0, Some("spends 0.00 % +-29.9 %")),
        (false, 20, 0.0, 0, None),
        // Five samples instead of ten can be chance.
        (false, 10, 0.04, 0, Some("spends 10.0 % +-30.")),
    ] {
        let options = arguments("--pid=1");
        let base = Report {
            system_wide,
            ..Report::new(&options, Some(1), None)
        };
        let mut report = base.of_part(Duration::from_secs(2), Duration::from_secs_f64(cpu_seconds));
        report.finish(Findings {
            lost,
            ..found(&[(1, samples, samples / 10)])
        });
        let text = table::text(&report, COLUMNS);
        assert!(
            text.contains("\n samples   % own     +-   reads/s  calls  process, caller\n"),
            "{text}"
        );
        assert_eq!(
            text.contains("vdso-who cannot see the time in system calls"),
            !system_wide,
            "{text}"
        );
        if let Some(expected) = expected {
            assert!(text.contains(expected), "{samples} {cpu_seconds}: {text}");
        } else {
            let text = text.replace('\n', " ");
            assert!(
                text.contains("no share is known") && report.whole.percent.is_none(),
                "{text}"
            );
            let stands_for = format!("the samples account for {:.2} s", samples as f64 / 499.0);
            assert!(system_wide || text.contains(&stands_for), "{text}");
        }
        let rate = report.whole.reads_per_second;
        let cpu_seconds = report.cpu_seconds;
        assert!(rate.is_none() || cpu_seconds > 0.0, "{rate:?}");
        let expected = cpu_seconds * 0.1 / 2.0 / report.read_ns * 1e9;
        assert!(
            rate.is_none_or(|rate| (rate - expected).abs() < 0.001 * expected + 1e-9),
            "{rate:?} {expected}"
        );
        for (read_ns, is_slow) in [(25.0, false), (1220.0, true)] {
            report.read_ns = read_ns;
            assert_eq!(
                table::text(&report, COLUMNS).contains("`vdso-doctor` explains why"),
                is_slow
            );
        }
    }
}

/// A process that ignores SIGCHLD waits for no child, so the CPU times of its children are lost
/// when they end.
#[test]
fn a_cpu_time_is_replaced_if_the_samples_show_more_than_twice_as_much() {
    for (system_wide, samples, cpu_seconds, expected) in [
        (true, 499, 0.0, 1.0),
        (true, 499, 0.1, 1.0),
        // There are twice as many samples as expected, but not more.
        (true, 499, 0.5, 0.5),
        (true, 499, 0.9, 0.9),
        (true, 499, 2.0, 2.0),
        // Such a report has no share.
        (false, 499, 0.1, 0.1),
    ] {
        let options = arguments("--pid=1");
        let base = Report {
            system_wide,
            ..Report::new(&options, Some(1), None)
        };
        let mut report = base.of_part(Duration::from_secs(2), Duration::from_secs_f64(cpu_seconds));
        report.finish(found(&[(1, samples, samples / 10)]));
        let seconds = report.cpu_seconds;
        assert!(
            (seconds - expected).abs() < 1e-9,
            "{cpu_seconds}: {seconds}"
        );
    }
}

/// The clock source can change while `top` runs. No read takes a second.
#[test]
fn each_part_measures_the_cost_of_a_read() {
    let options = arguments("--all --interval=1");
    let report = Report {
        read_ns: 1e9,
        ..Report::new(&options, None, None)
    };
    let part = report.of_part(Duration::from_secs(1), Duration::ZERO);
    assert!(part.read_ns < 1e9, "{}", part.read_ns);
}

/// A thread pool gives its threads names of their own.
#[test]
fn a_row_of_a_thread_names_its_process() {
    let options = arguments("--all --group-by=thread");
    let pid = (1 << 22) + 1; // larger than the id of any real process
    let taken = Sample {
        pid,
        thread: pid + 1,
        in_kernel: false,
        is_64_bit: true,
        registers: Registers {
            pc: 1,
            ..Registers::default()
        },
        number: None,
        first_argument: None,
        stack: vec![],
        callchain: vec![],
        kernel_chain: vec![],
    };
    let messages = [
        Event::Named(pid, "server".into(), true),
        Event::ThreadNamed(pid, pid + 1, "worker".into()),
        Event::Sample(Box::new(taken)),
    ];
    let mut report = Report::new(&options, None, None);
    report.finish(count(
        &options,
        None,
        messages.map(Message::Event),
        &Arc::default(),
    ));
    for (columns, between) in [(200, " of"), (80, ")\n"), (40, ")\n")] {
        let expected = format!("worker (thread {}{between}", pid + 1);
        let text = table::text(&report, columns);
        assert!(text.contains(&expected), "{text}");
        let expected = format!(" of server {pid}");
        assert!(text.contains(&expected), "{text}");
        assert!(
            text.lines().all(|line| line.chars().count() <= columns),
            "{text}"
        );
    }
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["processes"][0]["process_name"], "server", "{json:#}");
}

/// Counts 1000 reads. `of_clock` of them read CLOCK_MONOTONIC, whose id is 1.
#[test]
fn the_clock_of_most_counted_reads_is_named() {
    for (of_clock, expected) in [
        (
            1000,
            "read clocks 1000 times, nearly always CLOCK_MONOTONIC.",
        ),
        (
            901,
            "read clocks 1000 times, nearly always CLOCK_MONOTONIC.",
        ),
        (900, "read clocks 1000 times."),
    ] {
        let options = arguments("--exact -- true");
        let mut report = Report::new(&options, Some(1), Some(13_600))
            .of_part(Duration::from_secs(4), Duration::ZERO);
        let mut found = found(&[(1, 1000, 1000)]);
        let group = found.groups.values_mut().next().unwrap();
        let counts = group.callers.values_mut().next().unwrap();
        counts.clocks[1] = of_clock;
        counts.clocks[0] = 1000 - of_clock;
        report.finish(found);
        let text = table::text(&report, COLUMNS).replace('\n', " ");
        assert!(text.contains(expected), "{of_clock}: {text}");
    }
}

#[test]
fn counted_reads_are_exact_or_a_lower_bound() {
    for (executions, records, expected) in [
        (
            1000,
            1000,
            &[
                "read clocks 1000 times.",
                "\n       1000  a (1)",
                " 13.6 us",
            ][..],
        ),
        (
            1200,
            1000,
            &[
                "read clocks 1200 times.",
                "\n    >= 1000  a (1)",
                "lost 200 records",
                "lower bound",
            ],
        ),
        (1, 1, &["read clocks once.", "\n          1  a (1)"]),
        (0, 0, &["read no clock."]),
    ] {
        let options = arguments("--exact -- true");
        let mut report = Report::new(&options, Some(1), Some(13_600))
            .of_part(Duration::from_secs(4), Duration::ZERO);
        report.counted = executions;
        report.finish(found(&[(1, records, records)]));
        let text = table::text(&report, COLUMNS);
        assert!(
            expected.iter().all(|expected| text.contains(expected)),
            "{expected:?} {text}"
        );
        assert_eq!(report.whole.reads_per_second, Some(executions as f64 / 4.0));
        let row = report.processes[0].amounts;
        let is_exact = executions == records;
        assert_eq!(
            row.reads_per_second,
            is_exact.then_some(records as f64 / 4.0),
            "{text}"
        );
    }
}

#[test]
fn names_and_numbers_are_shortened_where_a_reader_misses_least() {
    let record =
        "a::tracing::Spans<std::string, std::vector<int> >::record(std::map<int, int> const&)";
    for (name, width, expected) in [
        ("short", 5, "short"),
        (record, 90, record),
        (record, 60, "a::tracing::Spans<..>::record(..)"),
        (record, 30, "...acing::Spans<..>::record(..)"),
        (
            "<a::B<C, C, C> as d::E<F>>::f",
            28,
            "<a::B<..> as d::E<..>>::f",
        ),
        ("<a::B>::f<Option<C>>", 18, "<a::B>::f<..>"),
        (
            "(anonymous namespace)::f(int, int)",
            30,
            "(anonymous namespace)::f(..)",
        ),
        ("a::operator->(b<int>)", 16, "...::operator->(..)"),
        ("a::operator<(b, cccccccc)", 16, "a::operator<(..)"),
        ("/a/long/path/to/threads.c:14", 15, ".../threads.c:14"),
    ] {
        let short = shortened(name, width);
        let is_short = short.chars().count() <= width;
        let ends = expected
            .trim_start_matches('.')
            .ends_with(short.trim_start_matches('.'));
        assert!(
            is_short && ends && !short.is_empty(),
            "{name} {width}: {short}"
        );
        assert!(
            short.starts_with("...") || short == expected,
            "{name} {width}: {short}"
        );
    }
    for (value, expected) in [
        (0.0, "0"),
        (7.4, "7"),
        (7_849.0, "7800"),
        (9_999.0, "10 k"),
        (48_100.0, "48 k"),
        (960_000.0, "960 k"),
        (1_849_000.0, "1.8 M"),
        (19_000_000.0, "19 M"),
        (994_000_000.0, "990 M"),
        (2.04e9, "2.0 G"),
    ] {
        assert_eq!(estimate(value), expected, "{value}");
    }
    assert_eq!(of_folded("a;b\n\u{1}<c>"), "a:b??<c>");
    let progress = Progress::default();
    progress.set_download(Some("a\u{1b}[2J\u{9b}".as_ref()));
    assert_eq!(progress.download().as_deref(), Some("a\\u{1b}[2J\\u{9b}"));
}

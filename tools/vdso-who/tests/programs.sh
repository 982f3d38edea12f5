#!/usr/bin/env bash
# Prints the tables of MEASUREMENTS.md about programs of Debian under load.
#
#   tests/programs.sh [VDSO_WHO]           the shares that vdso-who and perf measure at the same time
#   tests/programs.sh latency [VDSO_WHO]   the latency of redis alone and while it is watched
#   tests/programs.sh calls [VDSO_WHO]     the shares of programs that read through system calls;
#                                          fails if vdso-who and perf disagree
#   tests/programs.sh postgres [VDSO_WHO]  the example of README.md; writes who-postgres.svg
#
# Run it as root. It needs the packages linux-perf, postgresql, redis-server, nginx-core,
# apache2-utils, caddy, openjdk-17-jdk-headless, python3, mariadb-server, php-cli, ruby, luajit,
# erlang-base, prometheus, chromium, wine, wine64, gcc-mingw-w64-x86-64-win32, gcc, golang, rustc and
# stress-ng. For a program that is missing, it prints a line `not run here:`.
set -euo pipefail
mode=shares
case "${1:-}" in latency | calls | postgres) mode=$1; shift ;; esac
who=$(realpath "${1:-target/release/vdso-who}")
seconds=10
frequency=999
directory=$(mktemp -d /tmp/vdso-who.XXXXXX)
chmod 755 "$directory"
started=()
finish() {
    for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
    rm -rf "$directory"
}
trap finish EXIT
graph=$PWD/who-postgres.svg
cd "$directory"
mkdir html
head -c 4096 /dev/zero | tr '\0' x >html/page

# Starts a process, which is killed when this script ends.
start() {
    "$@" >>"$directory/log" 2>&1 &
    started+=($!)
}

has() {
    for tool in "$@"; do
        command -v "$tool" >/dev/null || { echo "not run here: $tool is missing" >&2; return 1; }
    done
}

# Watches a process with vdso-who and perf at the same time, and prints a row.
row() {
    local name=$1 pid=$2
    sleep 2
    perf record --quiet -e cpu-clock -F "$frequency" -a --call-graph dwarf -o perf.data -- sleep "$seconds" \
        >>log 2>&1 &
    local perf=$!
    "$who" --pid "$pid" --no-children --duration "$seconds" --frequency "$frequency" --json --output who.json
    wait "$perf"
    end_row
    perf script --no-inline --pid "$pid" -F pid,ip,sym,dso -i perf.data >perf.txt 2>>log
    /usr/bin/python3 - "$name" <<'PYTHON'
import collections, json, re, sys
def text(frames):
    # Directories and parameters are removed. The brackets around a type in a Go name are kept.
    names = [re.sub(r"(?<=[\w$>])\(.*\)$", "", name.rsplit("/", 1)[-1])[:40] for name in frames[:2]]
    return " in ".join("`%s`" % name for name in names)
def called(address, frame):
    name, file = re.match(r"(.*) \((.*)\)$", frame).groups()
    return "%s+0x%s" % (file, address) if name == "[unknown]" else name
report = json.load(open("who.json"))
share = "no share" if report["percent"] is None else "%.2f +-%.2f %%" % (report["percent"], report["percent_error"])
rate = report["reads_per_second"]
callers = report["processes"][0]["callers"] if report["processes"] else []
frames = [caller["function"] for caller in callers[:1]]
frames += [caller["called_by"]["function"] for caller in callers[:1] if caller["called_by"]]
# A sample is a clock read if its stack contains a function of the vDSO, or the kernel's function
# for a system call that reads a clock.
clock = re.compile(r"\(\[vdso\]\)|__\w+_sys_(clock_get|gettimeofday|time\b)")
skip = re.compile(r"\(\[|/(libc|ld-linux|libpthread)[-.\w]*\)")
all = reads = 0
perf = collections.Counter()
for sample in open("perf.txt").read().split("\n\n"):
    stack = re.findall(r"^\s+([0-9a-f]+) (.+)$", sample, re.M)
    all += bool(sample.strip())
    if any(clock.search(frame) for _, frame in stack):
        reads += 1
        own = [frame for frame in stack if not skip.search(frame[1])]
        perf[text([called(*frame) for frame in own])] += 1
top = max(perf, key=perf.get, default="")
print("| %s | %.2f %% | %s | %s | %s | %s |" % (sys.argv[1], all and 100 * reads / all, share,
      "-" if rate is None else "%.2g" % rate, text(frames), top))
PYTHON
}

# Ends the load and the program of a row.
end_row() {
    local pid
    for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done
    started=()
}

load() { start ab -q -k -c 8 -t 60 -n 100000000 "$1"; }

# Starts PostgreSQL, with a client that runs EXPLAIN ANALYZE.
start_postgres() {
    bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
    mkdir pg && chown postgres pg
    as_postgres() { (cd pg && setpriv --reuid postgres --regid postgres --clear-groups -- "$@"); }
    as_postgres "$bin/initdb" -D data >>log
    cd pg
    start setpriv --reuid postgres --regid postgres --clear-groups -- \
        "$bin/postgres" -D "$directory/pg/data" -k "$directory/pg" -c listen_addresses=
    postgres_pid=${started[-1]}
    cd ..
    until as_postgres psql -qh "$directory/pg" -c '' 2>/dev/null; do sleep 0.2; done
    echo 'EXPLAIN ANALYZE SELECT count(*) FROM generate_series(1, 1000000);' >query
    start setpriv --reuid postgres --regid postgres --clear-groups -- \
        pgbench -n -h "$directory/pg" -f query -T 60 postgres
    sleep 1
}

postgres_row() {
    start_postgres
    local backend="SELECT pid FROM pg_stat_activity WHERE query LIKE 'EXPLAIN%'"
    row "postgres $("$bin/postgres" --version | cut -d' ' -f3), EXPLAIN ANALYZE" \
        "$(as_postgres psql -qAth "$directory/pg" -c "$backend")"
}

postgres() {
    has psql pgbench setpriv
    start_postgres
    "$who" --pid "$postgres_pid" --output "$graph" & local drawing=$!
    "$who" --pid "$postgres_pid"
    wait "$drawing"
}

redis() {
    start redis-server --port 0 --unixsocket "$directory/redis" --save '' --daemonize no
    redis_pid=${started[-1]}
    sleep 1
}

shares() {
    echo "| program | perf | vdso-who | reads/s | caller | caller by perf |"
    echo "|---|---|---|---|---|---|"
    if has psql pgbench setpriv; then postgres_row; fi
    if has redis-server redis-benchmark; then
        redis
        start redis-benchmark -s "$directory/redis" -t get -c 20 -n 100000000 -q
        row "redis $(redis-server --version | sed 's/.*v=\([^ ]*\).*/\1/'), GET" "$redis_pid"
    fi
    if has nginx ab; then
        printf 'worker_processes 1;\nerror_log log;\npid nginx.pid;\nevents {}\nhttp { access_log access;
            server { listen 127.0.0.1:18080; root %s/html; } }\n' "$directory" >nginx.conf
        start nginx -p "$directory" -c nginx.conf -g 'daemon off;'
        sleep 1
        local worker
        worker=$(pgrep -P "${started[-1]}")
        load http://127.0.0.1:18080/page
        row "nginx $(nginx -v 2>&1 | sed 's,.*/,,'), files" "$worker"
    fi
    if has caddy ab; then
        start env HOME="$directory" caddy file-server --listen 127.0.0.1:18081 --root html --access-log
        local caddy=${started[-1]}
        sleep 2
        load http://127.0.0.1:18081/page
        row "Go: caddy $(caddy version), files" "$caddy"
    fi
    if has java javac ab; then
        cat >Server.java <<'JAVA'
import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
class Server {
    public static void main(String[] arguments) throws Exception {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 18082), 0);
        server.createContext("/", exchange -> {
            long start = System.nanoTime();
            byte[] page = new byte[4096];
            for (int i = 0; i < page.length; i++) page[i] = (byte) (System.nanoTime() - start);
            exchange.sendResponseHeaders(200, page.length);
            exchange.getResponseBody().write(page);
            exchange.close();
        });
        server.start();
    }
}
JAVA
        javac Server.java
        start java -cp . Server
        local java=${started[-1]}
        sleep 2
        load http://127.0.0.1:18082/page
        sleep 5
        jcmd "$java" Compiler.perfmap >>log
        row "Java $(java -version 2>&1 | sed -n '1s/.*"\(.*\)".*/\1/p'), HttpServer" "$java"
    fi
    if has /usr/bin/python3 ab; then
        start /usr/bin/python3 -m http.server --bind 127.0.0.1 --directory html 18083
        local python=${started[-1]}
        sleep 1
        load http://127.0.0.1:18083/page
        row "Python $(/usr/bin/python3 -V | cut -d' ' -f2), http.server" "$python"
    fi
    if has mariadbd mariadb-install-db mariadb; then mariadb_server; fi
    scripts
    if has prometheus ab; then
        printf 'global: {scrape_interval: 100ms, scrape_timeout: 100ms}
scrape_configs: [{job_name: self, static_configs: [{targets: ["127.0.0.1:18084"]}]}]\n' >prometheus.yml
        start prometheus --config.file=prometheus.yml --storage.tsdb.path=tsdb --web.listen-address=127.0.0.1:18084
        local prometheus=${started[-1]}
        sleep 3
        load 'http://127.0.0.1:18084/api/v1/query?query=rate(go_goroutines[1m])'
        row "Go: prometheus $(prometheus --version 2>&1 | sed -n '1s/.*version \([^ +]*\).*/\1/p'), queries" "$prometheus"
    fi
    if has chromium; then
        echo '<script>const post = () => { const end = performance.now() + 50; let sum = 0;
            while (performance.now() < end) for (let i = 0; i < 100; i++) sum += Math.sqrt(i);
            setTimeout(post) }; post()</script>' >html/loop.html
        start chromium --headless --no-sandbox --disable-gpu --user-data-dir="$directory/chromium" \
            --remote-debugging-port=18085 "file://$directory/html/loop.html"
        sleep 8
        row "chromium $(chromium --version 2>>log | sed -n 's/^Chromium \([^ ]*\).*/\1/p'), performance.now()" \
            "$(busiest 'chromium.*--type=renderer')"
    fi
    if has wine x86_64-w64-mingw32-gcc; then
        printf '#include <windows.h>
            volatile long long sum;
            int main(void) { for (;;) { LARGE_INTEGER now; QueryPerformanceCounter(&now); sum += now.QuadPart;
                for (int i = 0; i < 100; i++) sum += i; } }' >reads.c
        x86_64-w64-mingw32-gcc -O1 -o reads.exe reads.c
        start env HOME="$directory" WINEDEBUG=-all WINEPREFIX="$directory/wine" wine "$directory/reads.exe"
        sleep 20
        row "$(wine --version 2>>log), QueryPerformanceCounter" "$(busiest reads.exe)"
        env HOME="$directory" WINEPREFIX="$directory/wine" wineserver -k || true
    fi
}

# Prints the id of a process whose command line contains this text: the one that has used the most
# CPU time.
busiest() { ps -eo cputimes=,pid=,args= | grep -v grep | grep -- "$1" | sort -n | awk 'END { print $2 }'; }

mariadb_server() {
    mkdir mariadb && chown mysql mariadb
    mariadb-install-db --no-defaults --user=mysql --datadir="$directory/mariadb" >>log 2>&1
    start mariadbd --no-defaults --user=mysql --datadir="$directory/mariadb" --socket="$directory/mariadb/socket" \
        --skip-networking --skip-grant-tables
    local mariadb=${started[-1]}
    local client=(mariadb --no-defaults --silent --socket="$directory/mariadb/socket")
    until "${client[@]}" -e 'SELECT 1' >>log 2>&1; do sleep 0.5; done
    start bash -c 'exec "$@" >/dev/null < <(yes "SELECT SYSDATE(6);")' bash "${client[@]}"
    row "MariaDB $(mariadbd --version | sed 's/.*Ver \([0-9.]*\).*/\1/'), SELECT SYSDATE(6)" "$mariadb"
}

# Measures interpreters. Each runs a loop that computes a sum and reads a clock.
scripts() {
    if has php; then
        echo '<?php while (true) { $sum = 0; for ($i = 0; $i < 20; $i++) $sum += $i; microtime(true); }' >loop.php
        start php loop.php
        row "PHP $(php -r 'echo PHP_VERSION;'), microtime()" "${started[-1]}"
    fi
    if has ruby; then
        echo 'loop { (0..20).sum { |i| i }; Process.clock_gettime(Process::CLOCK_MONOTONIC) }' >loop.rb
        start ruby loop.rb
        row "Ruby $(ruby -e 'print RUBY_VERSION'), Process.clock_gettime" "${started[-1]}"
    fi
    if has luajit; then
        echo 'while true do local sum = 0; for i = 1, 1000 do sum = sum + i % 7 end; os.clock() end' >clock.lua
        start luajit clock.lua
        row "LuaJIT $(luajit -v | cut -d' ' -f2), os.clock()" "${started[-1]}"
        echo 'local ffi = require "ffi"
            ffi.cdef "struct timespec { long s, ns; }; int clock_gettime(int, struct timespec *);"
            local time, sum = ffi.new("struct timespec"), 0
            while true do for i = 1, 100 do sum = sum + i % 7 end; ffi.C.clock_gettime(1, time) end' >ffi.lua
        start luajit ffi.lua
        row "LuaJIT $(luajit -v | cut -d' ' -f2), ffi" "${started[-1]}"
    fi
    if has erl; then
        start env HOME="$directory" erl -noshell -eval \
            'Loop = fun(Self) -> lists:sum(lists:seq(1, 20)), erlang:monotonic_time(), Self(Self) end, Loop(Loop).'
        sleep 1
        row "Erlang $(HOME=$directory erl -noshell -eval 'io:put_chars(erlang:system_info(otp_release)), halt().'), erlang:monotonic_time()" \
            "$(busiest beam.smp)"
    fi
}

# Measures four programs that read the clock through system calls, and one that reads in the vDSO.
calls() {
    seconds=5
    echo "load average: $(cut -d' ' -f1 /proc/loadavg)" >&2
    : >disagreements
    echo "| program | perf | vdso-who | runs that agree |"
    echo "|---|---|---|---|"
    if has gcc; then
        printf '#include <sys/syscall.h>\n#include <time.h>\n#include <unistd.h>\n
            int main(void) { struct timespec t; for (;;) for (int i = 0; i < 1000; i++)
                syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t); }\n' >calls.c
        gcc -O2 -g -o calls-c calls.c
        repeat "C, \`syscall(SYS_clock_gettime)\`" ./calls-c
        printf '#include <time.h>\nvolatile long sum;
            int main(void) { struct timespec t; for (;;) { clock_gettime(CLOCK_MONOTONIC, &t);
                for (int i = 0; i < 100; i++) sum += i; } }\n' >vdso.c
        gcc -O2 -g -o calls-vdso vdso.c
        repeat "C, \`clock_gettime\` in the vDSO" ./calls-vdso
    fi
    if has go; then
        # golang.org/x/sys/unix.ClockGettime makes the same call.
        printf 'package main\nimport ("syscall"; "unsafe")\n
            func main() { var time [2]int64; for { for i := 0; i < 1000; i++ {
                syscall.Syscall(syscall.SYS_CLOCK_GETTIME, 1, uintptr(unsafe.Pointer(&time)), 0) } } }\n' >calls.go
        HOME="$directory" GOCACHE="$directory/go" go build -o calls-go calls.go
        repeat "Go, \`syscall.Syscall(SYS_CLOCK_GETTIME)\`" ./calls-go
    fi
    if has stress-ng; then repeat "stress-ng --clock 1" stress-ng --clock 1 --timeout 600 --temp-path "$directory"; fi
    if has rustc; then
        printf 'use std::time::Instant;
            unsafe extern "C" { fn syscall(number: i64, ...) -> i64; }
            fn main() { let mut time = [0i64; 2]; loop { for _ in 0..4 { std::hint::black_box(Instant::now()); }
                unsafe { syscall(228, 1, time.as_mut_ptr()); } } }\n' >calls.rs
        rustc --edition 2024 -O -g -o calls-rust calls.rs
        repeat "Rust, \`libc::syscall\` beside \`Instant::now\`" ./calls-rust
    fi
    if [ -s disagreements ]; then
        printf 'vdso-who and perf do not agree:\n%s\n' "$(cat disagreements)" >&2
        return 1
    fi
    echo "vdso-who and perf agree in each run" >&2
}

# Watches a program with vdso-who and perf at the same time, five times, and prints a row for the
# run with the median share.
repeat() {
    local name=$1 round
    shift
    : >runs
    start "$@"
    local pid=${started[-1]}
    sleep 2
    # stress-ng starts a process that reads the clock, so its newest child is watched, if there is
    # one.
    pid=$(pgrep -n -P "$pid" || echo "$pid")
    for round in 1 2 3 4 5; do
        perf record --quiet -e cpu-clock -F "$frequency" -a --call-graph dwarf -o perf.data -- sleep "$seconds" \
            >>log 2>&1 &
        local perf=$!
        "$who" --pid "$pid" --no-children --duration "$seconds" --frequency "$frequency" --json --output who.json
        if ! wait "$perf"; then
            tail -3 log >&2
            continue
        fi
        perf script --no-inline --pid "$pid" -F pid,ip,sym,dso -i perf.data >perf.txt 2>>log
        /usr/bin/python3 - >>runs <<'PYTHON'
import json, re
# At the entry and the exit of a system call, no function of the kernel shows which call it is, so
# perf cannot count these samples. They are part of its error.
clock = re.compile(r"\(\[vdso\]\)|__\w+_sys_(clock_get|gettimeofday|time\b)")
named = re.compile(r"__\w+_sys_|asm_(sysvec|exc|common_interrupt)|ret_from_fork")
whole = reads = edges = 0
for sample in open("perf.txt").read().split("\n\n"):
    stack = re.findall(r"^\s+[0-9a-f]+ (.+)$", sample, re.M)
    kernel = [frame for frame in stack if "[kernel" in frame]
    whole += bool(stack)
    if any(clock.search(frame) for frame in stack):
        reads += 1
    elif kernel and not any(named.search(frame) for frame in kernel):
        edges += 1
report = json.load(open("who.json"))
print(json.dumps([whole, reads, edges, report["percent"], report["percent_error"]]))
PYTHON
    done
    end_row
    /usr/bin/python3 - "$name" <<'PYTHON'
import json, math, sys
name, rounds = sys.argv[1], 5
def interval(part, whole):
    """Wilson's interval of a share, as in src/report/figures.rs, in percent."""
    share, z = part / whole, 1.96
    center = share + z * z / (2 * whole)
    half = z * math.sqrt(share * (1 - share) / whole + (z / (2 * whole)) ** 2)
    scale = 1 + z * z / whole
    return 100 * (center - half) / scale, 100 * (center + half) / scale
lines, agreeing = [], 0
for line in open("runs"):
    whole, reads, edges, share, error = json.loads(line)
    if not whole or share is None:
        continue
    # A sample at the entry or the exit of a system call may or may not be in a clock read.
    perf = 100 * reads / whole
    low, high = interval(reads, whole)[0], interval(reads + edges, whole)[1]
    agrees = share - error <= high and low <= share + error
    agreeing += agrees
    row = "%.2f -%.2f +%.2f %% | %.2f +-%.2f %%" % (perf, perf - low, high - perf, share, error)
    lines.append((share, row))
    print(name, row, "agrees" if agrees else "DISAGREES", sep=" | ", file=sys.stderr)
lines.sort()
middle = lines[len(lines) // 2][1] if lines else "no share | no share"
print("| %s | %s | %d of %d |" % (name, middle, agreeing, rounds))
if agreeing < rounds:
    print("%s: %d of %d runs agree" % (name, agreeing, rounds), file=open("disagreements", "a"))
PYTHON
}

# Measures five rounds, because the speed of the machine changes, and prints the medians.
latency() {
    has redis-server redis-benchmark perf
    redis
    benchmark() { redis-benchmark -s "$directory/redis" -t get -c 2 -n 200000 --csv | sed -n 2p | tr -d '"'; }
    benchmark >/dev/null
    for _ in 1 2 3 4 5; do
        echo "alone,$(benchmark)"
        "$who" --pid "$redis_pid" --duration 600 >>log & local tool=$!
        sleep 2; echo "vdso-who,$(benchmark)"; kill -INT "$tool"; wait "$tool"
        perf record --quiet -e cpu-clock -F 499 -p "$redis_pid" -o perf.data >>log 2>&1 & tool=$!
        sleep 2; echo "perf record,$(benchmark)"; kill -INT "$tool"; wait "$tool" || true
        perf record --quiet -e cpu-clock -F 499 --call-graph dwarf -p "$redis_pid" -o perf.data >>log 2>&1 & tool=$!
        sleep 2; echo "perf record --call-graph dwarf,$(benchmark)"; kill -INT "$tool"; wait "$tool" || true
    done >latencies
    /usr/bin/python3 - <<'PYTHON'
import statistics
rows = {}
for line in open("latencies"):
    mode, _, rate, _, _, p50, _, p99, _ = line.strip().split(",")
    rows.setdefault(mode, []).append([float(rate), float(p50), float(p99)])
print("| redis | GET a second | p50 | p99 | range of p99 |\n|---|---|---|---|---|")
for mode, runs in rows.items():
    rate, p50, p99 = (statistics.median(column) for column in zip(*runs))
    last = [run[2] for run in runs]
    print("| %s | %d | %.3f ms | %.3f ms | %.3f to %.3f ms |" % (mode, rate, p50, p99, min(last), max(last)))
PYTHON
}

has perf
"$mode"

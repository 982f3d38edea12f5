#!/usr/bin/env bash
# Prints tables of docs/WHO.md: programs as Debian has them, under load.
#
#   tests/programs.sh [VDSO_WHO]           shares of vdso-who and of perf, of the same 10 seconds
#   tests/programs.sh latency [VDSO_WHO]   the latency of redis alone, sampled, and with perf
#
# As root, with the packages linux-perf, postgresql, redis-server, nginx-core, apache2-utils, caddy,
# openjdk-17-jdk-headless and python3. A program that is missing has a line `not run here:`.
set -euo pipefail
mode=shares
if [ "${1:-}" = latency ]; then mode=latency; shift; fi
who=$(realpath "${1:-target/release/vdso-who}")
seconds=10
frequency=1999
folder=$(mktemp -d /tmp/vdso-who.XXXXXX)
chmod 755 "$folder"
started=()
finish() {
    for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; done
    rm -rf "$folder"
}
trap finish EXIT
cd "$folder"
mkdir html
head -c 4096 /dev/zero | tr '\0' x >html/page

# Starts a process, which ends with this script.
start() {
    "$@" >>"$folder/log" 2>&1 &
    started+=($!)
}

has() {
    for tool in "$@"; do
        command -v "$tool" >/dev/null || { echo "not run here: $tool is missing" >&2; return 1; }
    done
}

# Ends the load and the program of a row.
end_row() {
    for pid in "${started[@]}"; do kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done
    started=()
}

# The share of a process's samples in the vDSO.
share() {
    perf script -i "$1" -F pid,ip,dso 2>>log | awk -v pid="$2" '
        $1 == pid { all++; if (/\[vdso\]/) vdso++ }
        END { printf "%.2f %%", all ? 100 * vdso / all : 0 }'
}

# Watches a process with both programs at once, and prints a row.
row() {
    local name=$1 pid=$2
    sleep 2
    local sample=(perf record --quiet -e cpu-clock -F "$frequency")
    "${sample[@]}" -a -o all.data -- sleep "$seconds" >>log 2>&1 &
    local all=$!
    "${sample[@]}" -p "$pid" -o one.data -- sleep "$seconds" >>log 2>&1 &
    local one=$!
    "$who" --pid "$pid" --duration "$seconds" --frequency "$frequency" --json --output who.json
    wait "$all" "$one"
    /usr/bin/python3 - "$name" "$(share all.data "$pid")" "$(share one.data "$pid")" <<'PYTHON'
import json, re, sys
report = json.load(open("who.json"))
callers = report["processes"][0]["callers"] if report["processes"] else []
share = "no share" if report["percent"] is None else "%.2f +-%.2f %%" % (report["percent"], report["percent_error"])
rate = report["reads_per_second"]
known = sum(caller["records"] for caller in callers if "+0x" not in caller["function"] and caller["function"] != "[unknown]")
all = sum(caller["records"] for caller in callers)
def short(frame):
    name = frame["function"].rsplit("/", 1)[-1]
    # Without parameters; Go has brackets in a type, too.
    return re.sub(r"(?<=[\w$>])\(.*\)$", "", name)[:40]
def text(caller):
    next = caller["called_by"]
    return "`%s`" % short(caller) + (" in `%s`" % short(next) if next else "")
names = ", ".join(text(caller) for caller in callers[:2])
print("| %s | %s | %s | %s | %s | %d of %d | %s |" % (*sys.argv[1:4], share, "-" if rate is None else "%.2g" % rate, known, all, names))
PYTHON
    end_row
}

load() { start ab -q -k -c 8 -t 60 -n 100000000 "$1"; }

postgres() {
    local bin
    bin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
    mkdir pg && chown postgres pg
    as_postgres() { (cd pg && setpriv --reuid postgres --regid postgres --clear-groups -- "$@"); }
    as_postgres "$bin/initdb" -D data >>log
    cd pg
    start setpriv --reuid postgres --regid postgres --clear-groups -- \
        "$bin/postgres" -D "$folder/pg/data" -k "$folder/pg" -c listen_addresses=
    cd ..
    until as_postgres psql -qh "$folder/pg" -c '' 2>/dev/null; do sleep 0.2; done
    echo 'EXPLAIN ANALYZE SELECT count(*) FROM generate_series(1, 1000000);' >query
    start setpriv --reuid postgres --regid postgres --clear-groups -- \
        pgbench -n -h "$folder/pg" -f query -T 60 postgres
    sleep 1
    local backend="SELECT pid FROM pg_stat_activity WHERE query LIKE 'EXPLAIN%'"
    row "postgres $("$bin/postgres" --version | cut -d' ' -f3), EXPLAIN ANALYZE" \
        "$(as_postgres psql -qAth "$folder/pg" -c "$backend")"
}

redis() {
    start redis-server --port 0 --unixsocket "$folder/redis" --save '' --daemonize no
    redis_pid=${started[-1]}
    sleep 1
}

shares() {
    echo "| program | perf -a | perf -p | vdso-who | reads/s | with a name | callers |"
    echo "|---|---|---|---|---|---|---|"
    if has psql pgbench setpriv; then postgres; fi
    if has redis-server redis-benchmark; then
        redis
        start redis-benchmark -s "$folder/redis" -t get -c 20 -n 100000000 -q
        row "redis $(redis-server --version | sed 's/.*v=\([^ ]*\).*/\1/'), GET" "$redis_pid"
    fi
    if has nginx ab; then
        printf 'worker_processes 1;\nerror_log log;\npid nginx.pid;\nevents {}\nhttp { access_log access;
            server { listen 127.0.0.1:18080; root %s/html; } }\n' "$folder" >nginx.conf
        start nginx -p "$folder" -c nginx.conf -g 'daemon off;'
        sleep 1
        local worker
        worker=$(pgrep -P "${started[-1]}")
        load http://127.0.0.1:18080/page
        row "nginx $(nginx -v 2>&1 | sed 's,.*/,,'), files" "$worker"
    fi
    if has caddy ab; then
        start env HOME="$folder" caddy file-server --listen 127.0.0.1:18081 --root html --access-log
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
}

# Five rounds, because the machine changes; the middle of each.
latency() {
    has redis-server redis-benchmark perf
    redis
    benchmark() { redis-benchmark -s "$folder/redis" -t get -c 2 -n 200000 --csv | sed -n 2p | tr -d '"'; }
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

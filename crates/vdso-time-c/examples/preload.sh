#!/usr/bin/env bash
# Measures what preload.c gains in PostgreSQL and Redis, and prints a Markdown table.
#
#   crates/vdso-time-c/examples/preload.sh [ROUNDS]
#
# It starts each server three times: as it is, with the library, and with the library built with
# -DUNORDERED. The servers listen on Unix sockets in a directory of this run, and end with the
# script. The three variants take turns. Each figure is the smallest of all rounds. It is a CPU time
# of the server, and not a duration, because other programs use the machine as well. perf(1)
# measures the shares: samples in the vDSO, in libc's functions that call it, and in the library.
#
# Needs cargo, make and a C compiler. Uses postgresql, redis-server and linux-perf if they are
# installed.
set -euo pipefail

rounds=${1:-40}
package=$(realpath "$(dirname "$0")/..")
directory=$(mktemp -d /tmp/vdso-time-preload.XXXXXX)
chmod 755 "$directory"
variants="libc ordered unordered"
servers=()
finish() {
    for pid in "${servers[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait
    rm -rf "$directory"
}
trap finish EXIT

has() { command -v "$1" >/dev/null; }

build() {
    make -s -C "$package" install prefix="$directory/usr" >"$directory/log" 2>&1
    for variant in ordered unordered; do
        cc -O2 -shared -fPIC -o "$directory/$variant.so" "$package/examples/preload.c" \
            -D"${variant^^}" -I"$directory/usr/include" \
            -Wl,--exclude-libs,ALL "$directory/usr/lib/libvdso_time.a"
    done
}

# Prints the LD_PRELOAD of a variant.
library() { if [ "$1" != libc ]; then echo "$directory/$1.so"; fi; }

# Prints the nanoseconds for which the main thread of a process ran.
cpu_time() { cut -d' ' -f1 "/proc/$1/schedstat"; }

# Prints a row of the table: the least of each variant's figures, and their ratios to libc's.
row() { # NAME FILE
    local figures=() ratios=()
    for variant in $variants; do
        figures+=("$(sort -g "$directory/$2.$variant" | head -1)")
        ratios+=("$(awk -v a="${figures[-1]}" -v b="${figures[0]}" 'BEGIN { printf "%.3f", a / b }')")
    done
    echo "| $1 | ${figures[0]} | ${figures[1]} | ${figures[2]} | ${ratios[1]} | ${ratios[2]} |"
}

# Prints the row of the shares of clock reads in 5 seconds of each process.
shares() { # NAME PID PID PID
    has perf || return 0
    local cells=""
    for pid in "${@:2}"; do
        perf record --quiet -e cpu-clock -F 999 -p "$pid" -o "$directory/perf.data" -- sleep 5 \
            >/dev/null 2>&1 || return 0
        cells+=" $(perf script -i "$directory/perf.data" -F ip,sym,dso 2>/dev/null | awk '
            NF { all++ }
            /\[vdso\]|ordered\.so|clock_gettime|gettimeofday/ { part++ }
            END { printf "%.1f %%", all ? 100 * part / all : 0 }') |"
    done
    echo "| $1, share of clock reads |$cells | |"
}

# --- PostgreSQL: EXPLAIN ANALYZE reads the clock twice for each row of each node. -----------------

query() { # VARIANT SQL
    (cd / && "${postgres_user[@]}" psql -qAth "$directory/postgres-$1" -c "$2" postgres)
}

postgres_start() { # VARIANT
    local home=$directory/postgres-$1
    mkdir "$home"
    if [ "$(id -u)" = 0 ]; then chown postgres "$home"; fi
    "${postgres_user[@]}" "$postgres/initdb" -D "$home/data" >"$home.log" 2>&1
    "${postgres_user[@]}" env LD_PRELOAD="$(library "$1")" "$postgres/postgres" -D "$home/data" \
        -k "$home" -c listen_addresses= -c jit=off -c max_parallel_workers_per_gather=0 \
        >>"$home.log" 2>&1 &
    servers+=($!)
    until query "$1" 'SELECT 1' >/dev/null 2>&1; do sleep 0.2; done
    query "$1" 'CREATE TABLE numbers AS SELECT * FROM generate_series(1, 200000) AS number'
    query "$1" 'VACUUM FREEZE ANALYZE numbers'
}

# Prints the microseconds of CPU time of a query that counts the rows.
explain() { # VARIANT TIMING
    PGOPTIONS='-c log_statement_stats=on -c client_min_messages=log' \
        query "$1" "EXPLAIN (ANALYZE, TIMING $2) SELECT count(*) FROM numbers" 2>&1 |
        sed -n 's/.*\s\([0-9.]*\) s user, \([0-9.]*\) s system, .*elapsed/\1 \2/p' |
        awk '{ printf "%.0f\n", 1e6 * ($1 + $2) }'
}

# Prints the process of a session that repeats the query for a minute.
postgres_load() { # VARIANT
    echo 'EXPLAIN ANALYZE SELECT count(*) FROM numbers;' >"$directory/query"
    chmod 644 "$directory/query"
    (cd / && exec "${postgres_user[@]}" pgbench -n -h "$directory/postgres-$1" \
        -f "$directory/query" -T 60 postgres) >/dev/null 2>&1 &
    servers+=($!)
    sleep 1
    query "$1" "SELECT pid FROM pg_stat_activity WHERE query LIKE 'EXPLAIN%'" >"$directory/pid"
}

run_postgres() {
    postgres=$(find /usr/lib/postgresql -name bin 2>/dev/null | sort -V | tail -1)
    if [ -z "$postgres" ]; then
        echo "not run here: there is no PostgreSQL" >&2
        return
    fi
    # PostgreSQL refuses to run as root.
    postgres_user=()
    if [ "$(id -u)" = 0 ]; then
        postgres_user=(setpriv --reuid postgres --regid postgres --clear-groups --)
    fi
    for variant in $variants; do postgres_start "$variant"; done
    for _ in $(seq "$rounds"); do
        for variant in $variants; do
            explain "$variant" OFF >>"$directory/off.$variant"
            explain "$variant" ON >>"$directory/on.$variant"
        done
    done
    local name="PostgreSQL $("$postgres/postgres" --version | cut -d' ' -f3)" pids=()
    row "$name, EXPLAIN (ANALYZE, TIMING OFF), us" off
    row "$name, EXPLAIN (ANALYZE, TIMING ON), us" on
    for variant in $variants; do
        postgres_load "$variant"
        pids+=("$(cat "$directory/pid")")
    done
    shares "$name" "${pids[@]}"
}

# --- Redis: each command reads the clock. ---------------------------------------------------------

redis_start() { # VARIANT
    LD_PRELOAD="$(library "$1")" redis-server --port 0 --unixsocket "$directory/redis-$1" --save '' \
        --daemonize no >"$directory/redis-$1.log" &
    servers+=($!)
    redis[$1]=$!
    until [ -S "$directory/redis-$1" ]; do sleep 0.1; done
}

# Prints the nanoseconds of CPU time of the server for a GET.
get() { # VARIANT PIPELINED
    local requests=100000 before
    before=$(cpu_time "${redis[$1]}")
    redis-benchmark -s "$directory/redis-$1" -t get -c 8 -P "$2" -n $requests -q >/dev/null
    echo $((($(cpu_time "${redis[$1]}") - before) / requests))
}

run_redis() {
    if ! has redis-server || ! has redis-benchmark; then
        echo "not run here: there is no Redis" >&2
        return
    fi
    declare -A redis
    for variant in $variants; do redis_start "$variant"; done
    for _ in $(seq $((rounds / 4 + 1))); do
        for variant in $variants; do
            get "$variant" 1 >>"$directory/one.$variant"
            get "$variant" 32 >>"$directory/many.$variant"
        done
    done
    local name pids=()
    name="Redis $(redis-server --version | sed 's/.*v=\([^ ]*\).*/\1/')"
    row "$name, GET, ns" one
    row "$name, GET, 32 in a pipeline, ns" many
    for variant in $variants; do
        pids+=("${redis[$variant]}")
        timeout 60 redis-benchmark -s "$directory/redis-$variant" -t get -c 8 -P 32 -n 100000000 -q \
            >/dev/null &
        servers+=($!)
    done
    shares "$name, 32 in a pipeline" "${pids[@]}"
}

build
echo "| CPU time of the server | libc | preload.so | unordered | / libc | unordered / libc |"
echo "|---|---:|---:|---:|---:|---:|"
run_postgres
run_redis

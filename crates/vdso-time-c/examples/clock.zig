//! Reads CLOCK_MONOTONIC with vdso-time between two reads with Zig's own function.

const std = @import("std");

const Timespec = extern struct { sec: i64, nsec: i64 };
extern fn vdso_time_clock_gettime(clock: i32, now: *Timespec) c_int;

fn byZig() i64 {
    var now: std.os.linux.timespec = undefined;
    _ = std.os.linux.clock_gettime(.MONOTONIC, &now);
    return now.sec * 1_000_000_000 + now.nsec;
}

pub fn main() !void {
    var now: Timespec = undefined;
    const before = byZig();
    const status = vdso_time_clock_gettime(1, &now);
    const after = byZig();
    const nanos = now.sec * 1_000_000_000 + now.nsec;
    std.debug.print("monotonic {d} s, status {d}\n", .{ now.sec, status });
    if (status != 0 or nanos < before or nanos > after) return error.WrongTime;
}

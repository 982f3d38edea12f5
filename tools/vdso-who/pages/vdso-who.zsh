#compdef vdso-who

autoload -U is-at-least

_vdso-who() {
    typeset -A opt_args
    typeset -a _arguments_options
    local ret=1

    if is-at-least 5.2; then
        _arguments_options=(-s -S -C)
    else
        _arguments_options=(-s -C)
    fi

    local context curcontext="$curcontext" state line
    _arguments "${_arguments_options[@]}" : \
'-p+[Watch this process and its descendants]:PID:_pids' \
'--pid=[Watch this process and its descendants]:PID:_pids' \
'--cgroup=[Watch the processes of this cgroup, a directory under /sys/fs/cgroup]:DIRECTORY:_files' \
'--group-by=[What each row stands for \[default\: the processes with the same name; with --pid, each process, but after the first 7 of a name, the others share a row\]]:WHAT:((thread\:"Each thread has its own row"
process\:"Each process has its own row"
name\:"Processes with the same name and unit share a row"
unit\:"Processes of a systemd unit, container or pod share a row"))' \
'--depth=[How many functions a row shows\: the function that reads the clock, its caller, and so on]:N:_default' \
'(--folded -o --output --exact)-i+[Refresh the table every N seconds until \`q\` or Ctrl-C is pressed. With --json, print one line of JSON every N seconds]:N:_default' \
'(--folded -o --output --exact)--interval=[Refresh the table every N seconds until \`q\` or Ctrl-C is pressed. With --json, print one line of JSON every N seconds]:N:_default' \
'-d+[How long to measure \[default\: until COMMAND exits, otherwise 10 s\]]:SECONDS:_default' \
'--duration=[How long to measure \[default\: until COMMAND exits, otherwise 10 s\]]:SECONDS:_default' \
'-F+[Samples per second of CPU time \[default\: 499; fewer with more than 8 CPUs, so that all CPUs together take about 4000 samples a second\]]:NUMBER:_default' \
'-r+[Samples per second of CPU time \[default\: 499; fewer with more than 8 CPUs, so that all CPUs together take about 4000 samples a second\]]:NUMBER:_default' \
'--frequency=[Samples per second of CPU time \[default\: 499; fewer with more than 8 CPUs, so that all CPUs together take about 4000 samples a second\]]:NUMBER:_default' \
'--rate=[Samples per second of CPU time \[default\: 499; fewer with more than 8 CPUs, so that all CPUs together take about 4000 samples a second\]]:NUMBER:_default' \
'(-i --interval --exact --folded)--compare=[Compare the shares with the shares of an earlier --json report]:FILE:_files' \
'-o+[Write the report to this file; if its name ends with .svg, the report is a flame graph]:FILE:_files' \
'--output=[Write the report to this file; if its name ends with .svg, the report is a flame graph]:FILE:_files' \
'--generate=[Print the manual page (man) or completions (bash, fish, zsh)]:WHAT:(man bash fish zsh)' \
'-a[Watch all processes]' \
'--all[Watch all processes]' \
'(--cgroup -a --all)--no-children[Do not follow child processes (--exact implies this)]' \
'(-F --frequency -p --pid --cgroup -a --all)--exact[Count every vDSO read of COMMAND, which slows COMMAND down]' \
'--debuginfod[Download missing debug information with debuginfod-find(1)]' \
'(--json)--folded[Print call chains for flamegraph.pl, inferno or speedscope]' \
'--json[Print JSON]' \
'-f[Accepted and ignored, for users of strace (-f) and perf (-g)]' \
'--follow-forks[Accepted and ignored, for users of strace (-f) and perf (-g)]' \
'-h[Print help (see more with '\''--help'\'')]' \
'--help[Print help (see more with '\''--help'\'')]' \
'-V[Print version]' \
'--version[Print version]' \
'(-)1:command:_vdso-who_subjects' \
'*::arguments:_normal' \
&& ret=0
}

(( $+functions[_vdso-who_subjects] )) ||
_vdso-who_subjects() {
    _alternative \
        'commands:command:_command_names -e' \
        'modes:mode:((top\:"Watch all processes, every second"))'
}

(( $+functions[_vdso-who_commands] )) ||
_vdso-who_commands() {
    local commands; commands=()
    _describe -t commands 'vdso-who commands' commands "$@"
}

if [ "$funcstack[1]" = "_vdso-who" ]; then
    _vdso-who "$@"
else
    compdef _vdso-who vdso-who
fi

#compdef vdso-doctor

autoload -U is-at-least

_vdso-doctor() {
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
'(-q --quiet --require-user-space -v --verbose)--pid=[Examine the vDSO of the process PID]:PID:_pids' \
'*--require-user-space=[Require that these calls stay in user space\: if one does not, the exit status is 1. CALLS is a list of clocks (REALTIME, CLOCK_TAI, 7) and functions (time, gettimeofday, getcpu). The default, which --quiet implies, is REALTIME,MONOTONIC]::CALLS:_default' \
'--generate=[Print the manual page (man) or completions (bash, fish, zsh)]:WHAT:(man bash fish zsh)' \
'-v[Show all calls, the clock sources and the routes]' \
'--verbose[Show all calls, the clock sources and the routes]' \
'(-v --verbose --json)-q[Print nothing, or one line if a required call may enter the kernel]' \
'(-v --verbose --json)--quiet[Print nothing, or one line if a required call may enter the kernel]' \
'(-v --verbose)--json[Print JSON]' \
'(-v --verbose -q --quiet --json --pid)--metrics[Print OpenMetrics text, for node_exporter'\''s textfile collector]' \
'-h[Print help]' \
'--help[Print help]' \
'-V[Print version]' \
'--version[Print version]' \
&& ret=0
}

(( $+functions[_vdso-doctor_commands] )) ||
_vdso-doctor_commands() {
    local commands; commands=()
    _describe -t commands 'vdso-doctor commands' commands "$@"
}

if [ "$funcstack[1]" = "_vdso-doctor" ]; then
    _vdso-doctor "$@"
else
    compdef _vdso-doctor vdso-doctor
fi

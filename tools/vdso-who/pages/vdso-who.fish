# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_vdso_who_global_optspecs
    string join \n p/pid= cgroup= a/all no-children group-by= i/interval= d/duration= F/frequency= exact may-end-process debuginfod folded json o/output= f/follow-forks h/help V/version
end

function __fish_vdso_who_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_vdso_who_global_optspecs) -- $cmd 2>/dev/null
    or return 0
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_vdso_who_using_subcommand
    set -l cmd (__fish_vdso_who_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c vdso-who -n "__fish_vdso_who_needs_command" -s p -l pid -d 'Watch this process and its descendants' -r
complete -c vdso-who -n "__fish_vdso_who_needs_command" -l cgroup -d 'Watch the processes of this cgroup, a folder of /sys/fs/cgroup' -r -F
complete -c vdso-who -n "__fish_vdso_who_needs_command" -l group-by -d 'Which processes share a row; by default those of one name, but with --pid each process has its own' -r -f -a "process\t'None: each has a row of its own'
name\t'Those of one name and unit'
unit\t'Those of one systemd unit, container or pod'"
complete -c vdso-who -n "__fish_vdso_who_needs_command" -s i -l interval -d 'Print the table again after so many seconds, until Ctrl-C' -r
complete -c vdso-who -n "__fish_vdso_who_needs_command" -s d -l duration -d 'For how long; by default until the command ends, or for 10 seconds' -r
complete -c vdso-who -n "__fish_vdso_who_needs_command" -s F -s r -l frequency -l rate -d 'Samples for each second of CPU time' -r
complete -c vdso-who -n "__fish_vdso_who_needs_command" -s o -l output -d 'Write the report to this file; one whose name ends with .svg gets a flame graph' -r -F
complete -c vdso-who -n "__fish_vdso_who_needs_command" -s a -l all -d 'Watch all processes'
complete -c vdso-who -n "__fish_vdso_who_needs_command" -l no-children -d 'Watch one process only, as --exact does'
complete -c vdso-who -n "__fish_vdso_who_needs_command" -l exact -d 'Count every read of COMMAND, which slows it down'
complete -c vdso-who -n "__fish_vdso_who_needs_command" -l may-end-process -d 'Allow --exact with --pid, although a breakpoint can end a process that vdso-who did not start: on some virtual machines it raises SIGTRAP'
complete -c vdso-who -n "__fish_vdso_who_needs_command" -l debuginfod -d 'Download missing debug information by debuginfod-find(1)'
complete -c vdso-who -n "__fish_vdso_who_needs_command" -l folded -d 'Print call chains for flamegraph.pl, inferno or speedscope'
complete -c vdso-who -n "__fish_vdso_who_needs_command" -l json -d 'Print JSON'
complete -c vdso-who -n "__fish_vdso_who_needs_command" -s f -l follow-forks -d 'Options of strace and perf to follow forks, which is the default here'
complete -c vdso-who -n "__fish_vdso_who_needs_command" -s h -l help -d 'Print help (see more with \'--help\')'
complete -c vdso-who -n "__fish_vdso_who_needs_command" -s V -l version -d 'Print version'
complete -c vdso-who -n "__fish_vdso_who_needs_command" -a "completions" -d 'Print the completions for a shell'
complete -c vdso-who -n "__fish_vdso_who_needs_command" -a "man" -d 'Print the manual page, in roff'
complete -c vdso-who -n "__fish_vdso_who_using_subcommand completions" -f -a 'bash fish zsh'
complete -c vdso-who -n "__fish_vdso_who_using_subcommand completions" -s h -l help -d 'Print help'
complete -c vdso-who -n "__fish_vdso_who_using_subcommand man" -s h -l help -d 'Print help'

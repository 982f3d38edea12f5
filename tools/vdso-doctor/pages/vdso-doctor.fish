# Print an optspec for argparse to handle cmd's options that are independent of any subcommand.
function __fish_vdso_doctor_global_optspecs
    string join \n v/verbose q/quiet pid= json metrics require-user-space= h/help V/version
end

function __fish_vdso_doctor_needs_command
    # Figure out if the current invocation already has a command.
    set -l cmd (commandline -opc)
    set -e cmd[1]
    argparse -s (__fish_vdso_doctor_global_optspecs) -- $cmd 2>/dev/null
    or return 0
    if set -q argv[1]
        # Also print the command, so this can be used to figure out what it is.
        echo $argv[1]
        return 1
    end
    return 0
end

function __fish_vdso_doctor_using_subcommand
    set -l cmd (__fish_vdso_doctor_needs_command)
    test -z "$cmd"
    and return 1
    contains -- $cmd[1] $argv
end

complete -c vdso-doctor -n "__fish_vdso_doctor_needs_command" -l pid -d 'Examine the vDSO of this process' -r
complete -c vdso-doctor -n "__fish_vdso_doctor_needs_command" -l require-user-space -d 'Require that these reads stay in user space; the exit status says so. READS is a list of clocks (REALTIME, CLOCK_TAI, 7) and functions (time, gettimeofday, getcpu). The default, which --quiet implies, is REALTIME,MONOTONIC' -r
complete -c vdso-doctor -n "__fish_vdso_doctor_needs_command" -s v -l verbose -d 'Show all reads, the clock sources and the routes'
complete -c vdso-doctor -n "__fish_vdso_doctor_needs_command" -s q -l quiet -d 'Print nothing, or one line if a required read may enter the kernel'
complete -c vdso-doctor -n "__fish_vdso_doctor_needs_command" -l json -d 'Print JSON'
complete -c vdso-doctor -n "__fish_vdso_doctor_needs_command" -l metrics -d 'Print OpenMetrics text, for node_exporter\'s textfile collector'
complete -c vdso-doctor -n "__fish_vdso_doctor_needs_command" -s h -l help -d 'Print help'
complete -c vdso-doctor -n "__fish_vdso_doctor_needs_command" -s V -l version -d 'Print version'
complete -c vdso-doctor -n "__fish_vdso_doctor_needs_command" -f -a "completions" -d 'Print the completions for a shell'
complete -c vdso-doctor -n "__fish_vdso_doctor_needs_command" -f -a "man" -d 'Print the manual page, in roff'
complete -c vdso-doctor -n "__fish_vdso_doctor_using_subcommand completions" -f -a 'bash fish zsh'
complete -c vdso-doctor -n "__fish_vdso_doctor_using_subcommand completions" -s h -l help -d 'Print help'
complete -c vdso-doctor -n "__fish_vdso_doctor_using_subcommand man" -s h -l help -d 'Print help'

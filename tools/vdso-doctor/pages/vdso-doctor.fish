complete -c vdso-doctor -l pid -d 'Examine the vDSO of the process PID' -x -a '(__fish_complete_pids)'
complete -c vdso-doctor -l require-user-space -d 'Require that these calls stay in user space: if one does not, the exit status is 1. CALLS is a list of clocks (REALTIME, CLOCK_TAI, 7) and functions (time, gettimeofday, getcpu). The default, which --quiet implies, is REALTIME,MONOTONIC' -r
complete -c vdso-doctor -l generate -d 'Print the manual page (man) or completions (bash, fish, zsh)' -r -f -a "man\t''
bash\t''
fish\t''
zsh\t''"
complete -c vdso-doctor -s v -l verbose -d 'Show all calls, the clock sources and the routes'
complete -c vdso-doctor -s q -l quiet -d 'Print nothing, or one line if a required call may enter the kernel'
complete -c vdso-doctor -l json -d 'Print JSON'
complete -c vdso-doctor -l metrics -d 'Print OpenMetrics text, for node_exporter\'s textfile collector'
complete -c vdso-doctor -s h -l help -d 'Print help'
complete -c vdso-doctor -s V -l version -d 'Print version'

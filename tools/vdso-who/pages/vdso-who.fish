complete -c vdso-who -n __fish_is_first_token -x -a top -d 'Watch all processes, every second'
complete -c vdso-who -x -a '(__fish_complete_subcommand -- -p --pid --cgroup --group-by --depth -i --interval -d --duration -F -r --frequency --rate --compare -o --output --generate)'
complete -c vdso-who -s p -l pid -d 'Watch this process and its descendants' -x -a '(__fish_complete_pids)'
complete -c vdso-who -l cgroup -d 'Watch the processes of this cgroup, a directory under /sys/fs/cgroup' -r -F
complete -c vdso-who -l group-by -d 'What each row stands for [default: the processes with the same name; with --pid, each process, but after the first 7 of a name, the others share a row]' -r -f -a "thread\t'Each thread has its own row'
process\t'Each process has its own row'
name\t'Processes with the same name and unit share a row'
unit\t'Processes of a systemd unit, container or pod share a row'"
complete -c vdso-who -l depth -d 'How many functions a row shows: the function that reads the clock, its caller, and so on' -r
complete -c vdso-who -s i -l interval -d 'Refresh the table every N seconds until `q` or Ctrl-C is pressed. With --json, print one line of JSON every N seconds' -r
complete -c vdso-who -s d -l duration -d 'How long to measure [default: until COMMAND exits, otherwise 10 s]' -r
complete -c vdso-who -s F -s r -l frequency -l rate -d 'Samples per second of CPU time [default: 499; fewer with more than 8 CPUs, so that all CPUs together take about 4000 samples a second]' -r
complete -c vdso-who -l compare -d 'Compare the shares with the shares of an earlier --json report' -r -F
complete -c vdso-who -s o -l output -d 'Write the report to this file; if its name ends with .svg, the report is a flame graph' -r -F
complete -c vdso-who -l generate -d 'Print the manual page (man) or completions (bash, fish, zsh)' -r -f -a "man\t''
bash\t''
fish\t''
zsh\t''"
complete -c vdso-who -s a -l all -d 'Watch all processes'
complete -c vdso-who -l no-children -d 'Do not follow child processes (--exact implies this)'
complete -c vdso-who -l exact -d 'Count every vDSO read of COMMAND, which slows COMMAND down'
complete -c vdso-who -l debuginfod -d 'Download missing debug information with debuginfod-find(1)'
complete -c vdso-who -l folded -d 'Print call chains for flamegraph.pl, inferno or speedscope'
complete -c vdso-who -l json -d 'Print JSON'
complete -c vdso-who -s f -l follow-forks -d 'Accepted and ignored, for users of strace (-f) and perf (-g)'
complete -c vdso-who -s h -l help -d 'Print help (see more with \'--help\')'
complete -c vdso-who -s V -l version -d 'Print version'

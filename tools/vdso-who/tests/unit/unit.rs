//! Tests with the content of /proc/PID/cgroup on real systems.

use super::named;

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn a_cgroup_names_its_unit_container_or_pod() {
    let id = "0123456789ab".to_owned() + &"c".repeat(52);
    let pod = "12345678-1234-1234-1234-123456789012";
    let slice = format!(
        "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{}.slice",
        pod.replace('-', "_")
    );
    for (cgroups, expected) in [
        (
            "0::/system.slice/nginx.service".to_owned(),
            Some("nginx.service"),
        ),
        (
            "0::/system.slice/system-postgresql.slice/postgresql@15-main.service".into(),
            Some("postgresql@15-main.service"),
        ),
        (
            "0::/user.slice/user-1000.slice/user@1000.service/app.slice/firefox.scope".into(),
            Some("firefox.scope of user@1000.service"),
        ),
        (
            "0::/user.slice/user-1.slice/user@1.service".into(),
            Some("user@1.service"),
        ),
        (
            "0::/user.slice/user-0.slice/session-3.scope".into(),
            Some("session-3.scope"),
        ),
        (
            format!("0::/system.slice/docker-{id}.scope"),
            Some("docker 0123456789ab"),
        ),
        // cgroup v1: the path that names a unit counts, even if another path is longer.
        (
            "4:memory:/a/long/path/of/another/controller\n1:name=systemd:/case/a.service\n0::/"
                .into(),
            Some("a.service"),
        ),
        // A cgroup below the container's own, seen from another cgroup namespace.
        (
            format!("0::/../docker-{id}.scope/init.scope"),
            Some("docker 0123456789ab"),
        ),
        (
            format!("12:cpu,cpuacct:/docker/{id}\n1:name=systemd:/docker/{id}\n0::/"),
            Some("container 0123456789ab"),
        ),
        (
            format!("0::/machine.slice/libpod-{id}.scope/container"),
            Some("libpod 0123456789ab"),
        ),
        (
            format!("0::/{slice}/cri-containerd-{id}.scope"),
            Some("pod 12345678-1234-1234-1234-123456789012, container 0123456789ab"),
        ),
        (
            format!("1:cpu:/kubepods/besteffort/pod{pod}/{id}"),
            Some("pod 12345678-1234-1234-1234-123456789012, container 0123456789ab"),
        ),
        (
            format!("0::/{slice}"),
            Some("pod 12345678-1234-1234-1234-123456789012"),
        ),
        (
            "0::/lxc.payload.web/system.slice/cron.service".into(),
            Some("lxc web"),
        ),
        ("0::/init.scope".into(), Some("init.scope")),
        ("0::/".into(), None),
        ("0::/podium/docker-1.x".into(), None),
        (String::new(), None),
    ] {
        assert_eq!(named(&cgroups).as_deref(), expected, "{cgroups}");
    }
}

package server

import (
	"slices"
	"strings"
)

// shellFunctions start programs.
var shellFunctions = []string{"exec", "passthru", "pcntl_exec", "popen", "proc_open", "shell_exec", "system"}

// tenantFunctions reach other processes, users or the network past PHP's own
// clients, or what all sites share. Streams and unserialize() stay: too much needs
// them.
var tenantFunctions = []string{
	"chroot", "dl", "fsockopen", "mail", "pfsockopen", "proc_close", "proc_get_status", "proc_nice", "proc_terminate",
	"msg_get_queue", "msg_queue_exists", "msg_receive", "msg_remove_queue", "msg_send", "msg_set_queue", "msg_stat_queue",
	"opcache_compile_file", "opcache_get_configuration", "opcache_get_status", "opcache_invalidate",
	"opcache_is_script_cached", "opcache_reset",
	"pcntl_alarm", "pcntl_async_signals", "pcntl_fork", "pcntl_forkx", "pcntl_getpriority", "pcntl_rfork",
	"pcntl_setcpuaffinity", "pcntl_setns", "pcntl_setpriority", "pcntl_signal", "pcntl_signal_dispatch",
	"pcntl_sigprocmask", "pcntl_sigtimedwait", "pcntl_sigwaitinfo", "pcntl_unshare", "pcntl_wait", "pcntl_waitid",
	"pcntl_waitpid",
	"posix_initgroups", "posix_kill", "posix_mkfifo", "posix_mknod", "posix_setegid", "posix_seteuid", "posix_setgid",
	"posix_setpgid", "posix_setrlimit", "posix_setsid", "posix_setuid",
	"sem_acquire", "sem_get", "sem_release", "sem_remove",
	"shm_attach", "shm_detach", "shm_get_var", "shm_has_var", "shm_put_var", "shm_remove", "shm_remove_var",
	"shmop_delete", "shmop_open", "shmop_read", "shmop_size", "shmop_write",
}

// disabledFunctions are those that no script of the server has. They are the same
// for all sites: PHP forgets a function when it starts, not for a request.
func disabledFunctions(c SecurityConfig) []string {
	var names []string
	if c.DisableShellExec {
		names = append(names, shellFunctions...)
	}
	if c.MultiTenantHardening {
		names = append(names, tenantFunctions...)
	}
	return names
}

// siteSettings are the ini settings of a site on top of those of [php], by name:
// its own, its limits and, with private directories, what keeps it in them. ours
// tells the settings of [php], which are not for us to change. root is absolute.
func siteSettings(c Config, s SiteConfig, root string, d *privateDir, ours func(name string) bool) INITable {
	ini := INITable{}
	for name, value := range s.INI {
		ini[name] = value
	}
	set := func(name, value string) {
		if _, own := s.INI[name]; !own && !ours(name) {
			ini[name] = value
		}
	}
	if d != nil {
		set("sys_temp_dir", d.tmp)
		if _, own := s.INI["session.save_handler"]; !own && !ours("session.save_handler") {
			set("session.save_path", d.sessions)
			// Debian's clean-up knows only the directories of its own servers.
			set("session.gc_probability", "1")
			set("session.gc_divisor", "1000")
		}
	}
	if !c.Server.ResolveRoot { // or PHP would remember for long where the link led
		set("opcache.revalidate_path", "1")
		set("realpath_cache_ttl", "1")
	}
	if c.Server.Security.OpenBasedir {
		set("open_basedir", root+"/")
	}
	if basedir := ini["open_basedir"]; basedir != "" && d != nil {
		ini["open_basedir"] = strings.Join(append([]string{basedir}, d.all()...), ":")
	}
	return ini
}

// isOurs tells whether [php] ini_overrides has a setting.
func (c Config) isOurs(name string) bool {
	return slices.ContainsFunc(c.PHP.INIOverrides, func(o INI) bool { return o.Name == name })
}

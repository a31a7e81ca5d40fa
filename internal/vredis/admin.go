package vredis

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

func cmdTime(s *Server, _ *conn, _ []string) any {
	now := s.now()
	if s.call != nil {
		now = s.call.now
	}
	return []any{strconv.FormatInt(now.Unix(), 10), strconv.Itoa(now.Nanosecond() / 1000)}
}

func cmdWait(s *Server, c *conn, a []string) any {
	if s.faults.readonly {
		return replyError("ERR WAIT cannot be used with replica instances. Please also note that since Redis 4.0 if a replica is configured to be writable (which is not the default) writes to replicas are just local and are not propagated.")
	}
	n, ok := parseInt(a[1])
	if !ok {
		return notInt
	}
	timeout, ok := parseInt(a[2])
	switch {
	case !ok:
		return replyError("ERR timeout is not an integer or out of range")
	case timeout < 0:
		return replyError("ERR timeout is negative")
	case int64(s.faults.acking) >= n || c.srv.call != nil || c.id == 0:
		return integer(s.faults.acking)
	}
	return s.wait(c, timeout)
}

func cmdCluster(_ *Server, _ *conn, _ []string) any {
	return replyError("ERR This instance has cluster support disabled")
}

func cmdConfigSet(s *Server, _ *conn, a []string) any {
	for pair := range slices.Chunk(a[2:], 2) {
		name := strings.ToLower(pair[0])
		if len(pair) < 2 {
			return replyError("ERR wrong number of arguments for 'config|set' command")
		}
		switch name {
		case "maxmemory": // what there is is never measured: 1 is too little, more is enough
			n, ok := parseInt(pair[1])
			if !ok {
				return notDone("CONFIG SET maxmemory " + pair[1])
			}
			s.faults.oom = n > 0 && n < 1000
		case "min-replicas-to-write":
			n, ok := parseInt(pair[1])
			if !ok || n < 0 {
				return notDone("CONFIG SET min-replicas-to-write " + pair[1])
			}
			s.faults.wanted = int(n)
		case "requirepass":
			u := s.users["default"]
			u.nopass, u.passwords = pair[1] == "", []string{pair[1]}
		case "appendonly", "save", "timeout":
		default:
			return notDone("CONFIG SET " + name)
		}
	}
	return statusOK
}

func cmdConfigResetstat(s *Server, _ *conn, _ []string) any {
	clear(s.calls)
	return statusOK
}

func cmdInfo(s *Server, _ *conn, a []string) any {
	var b strings.Builder
	section := func(name string, optional bool, lines ...string) {
		wanted := len(a) == 1 && !optional
		for _, w := range a[1:] {
			w = strings.ToLower(w)
			wanted = wanted || w == name || w == "all" || w == "everything" || w == "default" && !optional
		}
		if wanted {
			b.WriteString("# " + strings.ToUpper(name[:1]) + name[1:] + "\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n")
		}
	}
	role := "master"
	if s.faults.readonly {
		role = "slave"
	}
	section("server", false, "redis_version:"+version, "redis_mode:standalone", "process_id:1", "tcp_port:6379",
		fmt.Sprintf("uptime_in_seconds:%d", int(s.now().Sub(s.started).Seconds())))
	section("clients", false, fmt.Sprintf("connected_clients:%d", len(s.conns)))
	section("persistence", false, fmt.Sprintf("loading:%d", boolean(s.faults.loading)))
	section("stats", false, fmt.Sprintf("pubsub_channels:%d", len(s.pubsub.plain)))
	section("replication", false, "role:"+role, fmt.Sprintf("connected_slaves:%d", s.faults.attached), fmt.Sprintf("master_repl_offset:%d", s.db.dirty))
	section("cluster", false, "cluster_enabled:0")
	section("keyspace", false, fmt.Sprintf("db0:keys=%d", len(s.db.keys)))
	var calls []string
	for _, name := range slices.Sorted(maps.Keys(s.calls)) {
		calls = append(calls, fmt.Sprintf("cmdstat_%s:calls=%d,usec=0,usec_per_call=0.00,rejected_calls=0,failed_calls=0", name, s.calls[name]))
	}
	section("commandstats", true, calls...)
	return b.String()
}

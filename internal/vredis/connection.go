package vredis

import (
	"fmt"
	"slices"
	"strings"
)

// version is that of the server that this one is compared with.
const version = "7.0.15"

func cmdHello(s *Server, c *conn, a []string) any {
	proto := c.proto
	rest := a[1:]
	if len(rest) > 0 {
		n, ok := parseInt(rest[0])
		if !ok {
			return replyError("ERR Protocol version is not an integer or out of range")
		}
		if n != 2 && n != 3 {
			return replyError("NOPROTO unsupported protocol version")
		}
		proto, rest = int(n), rest[1:]
	}
	name := c.name
	for len(rest) > 0 {
		switch {
		case strings.EqualFold(rest[0], "auth") && len(rest) > 2:
			if wrong := s.authenticate(c, rest[1], rest[2]); wrong != nil {
				return wrong
			}
			rest = rest[3:]
		case strings.EqualFold(rest[0], "setname") && len(rest) > 1:
			if !validName(rest[1]) {
				return replyError("ERR Client names cannot contain spaces, newlines or special characters.")
			}
			name, rest = rest[1], rest[2:]
		default:
			return errorf("ERR Syntax error in HELLO option '%s'", rest[0])
		}
	}
	if c.user == nil {
		return replyError("NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and select the RESP protocol version at the same time")
	}
	c.proto, c.name = proto, name
	return mapReply{"server", "redis", "version", version, "proto", integer(proto), "id", c.id,
		"mode", "standalone", "role", s.role(), "modules", []any{}}
}

func (s *Server) role() string {
	if s.faults.readonly {
		return "replica"
	}
	return "master"
}

func validName(name string) bool {
	for i := range len(name) {
		if name[i] < '!' || name[i] > '~' {
			return false
		}
	}
	return true
}

func cmdPing(_ *Server, c *conn, a []string) any {
	if len(a) > 2 {
		return replyError("ERR wrong number of arguments for 'ping' command")
	}
	if c.proto == 2 && c.subscribed() {
		return []any{"pong", append(a, "")[1]}
	}
	if len(a) == 2 {
		return a[1]
	}
	return status("PONG")
}

func cmdEcho(_ *Server, _ *conn, a []string) any { return a[1] }

func cmdSelect(_ *Server, _ *conn, a []string) any {
	n, ok := parseInt(a[1])
	switch {
	case !ok:
		return notInt
	case n != int64(int32(n)):
		return replyError("ERR value is out of range, value must between -2147483648 and 2147483647")
	case n < 0 || n > 15:
		return replyError("ERR DB index is out of range")
	case n != 0:
		return notDone("databases beside 0")
	}
	return statusOK
}

func cmdClientId(_ *Server, c *conn, _ []string) any { return c.id }

// cmdClientSetinfo is what servers from 7.2 on know.
func cmdClientSetinfo(_ *Server, _ *conn, a []string) any {
	if !strings.EqualFold(a[2], "lib-name") && !strings.EqualFold(a[2], "lib-ver") {
		return errorf("ERR Unrecognized option '%s'", a[2])
	}
	return statusOK
}

// cmdClientMaintNotifications answers as servers do that know no such subcommand, as nearly all.
func cmdClientMaintNotifications(_ *Server, _ *conn, a []string) any {
	return errorf("ERR unknown subcommand '%.128s'. Try CLIENT HELP.", a[1])
}

func (c *conn) describe() string {
	name := ""
	if c.user != nil {
		name = c.user.name
	}
	return fmt.Sprintf("id=%d addr=%s laddr=%s name=%s db=0 sub=%d psub=0 ssub=%d multi=%d user=%s resp=%d",
		c.id, "client", c.srv.addr, c.name, len(c.subs), len(c.shards), len(c.multi)-1, name, c.proto)
}

func cmdClientList(s *Server, _ *conn, a []string) any {
	ofType := func(*conn) bool { return true }
	if len(a) > 2 {
		if ofType = connType(a[3:]...); ofType == nil || !strings.EqualFold(a[2], "type") {
			return notDone("CLIENT LIST " + strings.Join(a[2:], " "))
		}
	}
	var b strings.Builder
	for _, c := range s.connsLocked() {
		if !ofType(c) {
			continue
		}
		b.WriteString(c.describe() + "\n")
	}
	return b.String()
}

// connType returns what tells connections of the type that is named; nil: there is none such.
func connType(name ...string) func(*conn) bool {
	switch strings.ToLower(strings.Join(name, " ")) {
	case "pubsub":
		return (*conn).subscribed
	case "normal":
		return func(c *conn) bool { return !c.subscribed() }
	}
	return nil
}

func cmdClientKill(s *Server, me *conn, a []string) any {
	rest := a[2:]
	if len(rest)%2 != 0 {
		return notDone("CLIENT KILL by address")
	}
	var tests []func(*conn) bool
	skipme := true
	for pair := range slices.Chunk(rest, 2) {
		switch value := pair[1]; strings.ToLower(pair[0]) {
		case "id":
			n, ok := parseInt(value)
			if !ok || n < 1 {
				return replyError("ERR client-id should be greater than 0")
			}
			tests = append(tests, func(c *conn) bool { return c.id == n })
		case "user":
			tests = append(tests, func(c *conn) bool { return c.user != nil && c.user.name == value })
		case "type":
			is := connType(value)
			if is == nil {
				return notDone("CLIENT KILL TYPE " + value)
			}
			tests = append(tests, is)
		case "skipme":
			skipme = strings.EqualFold(value, "yes")
		default:
			return notDone("CLIENT KILL " + pair[0])
		}
	}
	n := 0
next:
	for _, c := range s.connsLocked() {
		for _, ok := range tests {
			if !ok(c) {
				continue next
			}
		}
		if c == me && skipme {
			continue
		}
		c.endLocked(c != me)
		n++
	}
	return integer(n)
}

func cmdClientSetname(_ *Server, c *conn, a []string) any {
	if !validName(a[2]) {
		return replyError("ERR Client names cannot contain spaces, newlines or special characters.")
	}
	c.name = a[2]
	return statusOK
}

package vredis

import (
	"maps"
	"slices"
	"strings"
)

// user is one of the ACL; guarded by Server.mu.
type user struct {
	name      string
	enabled   bool
	nopass    bool
	passwords []string
	commands  []string        // rules in their order: +get, -@all, +script|load
	keys      map[string]bool // patterns
	channels  map[string]bool
}

// newUser returns one that may do everything.
func newUser(name, password string) *user {
	u := &user{name: name, enabled: true, nopass: password == "", commands: []string{"+@all"},
		keys: map[string]bool{"*": true}, channels: map[string]bool{"*": true}}
	if password != "" {
		u.passwords = []string{password}
	}
	return u
}

// apply changes a user by one rule of ACL SETUSER.
func (u *user) apply(rule string) any {
	low := strings.ToLower(rule)
	switch {
	case low == "on" || low == "off":
		u.enabled = low == "on"
	case low == "nopass":
		u.nopass, u.passwords = true, nil
	case low == "resetpass":
		u.nopass, u.passwords = false, nil
	case low == "reset":
		*u = user{name: u.name, commands: []string{"-@all"}, keys: map[string]bool{}, channels: map[string]bool{}}
	case low == "allkeys":
		u.keys = map[string]bool{"*": true}
	case low == "resetkeys":
		u.keys = map[string]bool{}
	case low == "allchannels":
		u.channels = map[string]bool{"*": true}
	case low == "resetchannels":
		u.channels = map[string]bool{}
	case low == "nocommands":
		u.commands = []string{"-@all"}
	case rule == "":
		return errorf("ERR Error in ACL SETUSER modifier '%s': Syntax error", rule)
	case rule[0] == '>':
		u.nopass, u.passwords = false, append(u.passwords, rule[1:])
	case rule[0] == '~':
		u.keys[rule[1:]] = true
	case rule[0] == '&':
		u.channels[rule[1:]] = true
	case rule[0] == '+' || rule[0] == '-':
		if low[1:] != "@all" && !strings.HasPrefix(low[1:], "@") && commands[strings.Split(low[1:], "|")[0]] == nil {
			return errorf("ERR Error in ACL SETUSER modifier '%s': Unknown command or category name in ACL", rule)
		}
		u.commands = append(u.commands, low)
	default:
		return notDone("the ACL rule " + rule)
	}
	return nil
}

// may reports whether the user may run a command.
func (u *user) may(d *command) (ok bool) {
	container, _, _ := strings.Cut(d.name, "|")
	for _, rule := range u.commands {
		what := rule[1:]
		category, isCategory := strings.CutPrefix(what, "@")
		if isCategory && (category == "all" || hasWord(d.categories, category)) || what == d.name || what == container {
			ok = rule[0] == '+'
		}
	}
	return ok
}

func matchesAny(patterns map[string]bool, s string) bool {
	if patterns["*"] {
		return true
	}
	for p := range patterns {
		if match(p, s) {
			return true
		}
	}
	return false
}

// denial is why a user may not do something.
type denial int

const (
	allowed denial = iota
	deniedCommand
	deniedKey
	deniedChannel
)

// check finds out whether the user may run a command with these arguments.
func (u *user) check(d *command, args []string) denial {
	if d.has("no_auth") {
		return allowed
	}
	if !u.may(d) {
		return deniedCommand
	}
	for _, key := range d.keysOf(args) {
		if !matchesAny(u.keys, key) {
			return deniedKey
		}
	}
	switch d.name {
	case "publish", "spublish":
		if !matchesAny(u.channels, args[1]) {
			return deniedChannel
		}
	case "subscribe", "ssubscribe":
		for _, ch := range args[1:] {
			if !matchesAny(u.channels, ch) {
				return deniedChannel
			}
		}
	}
	return allowed
}

// refuses is check for a client.
func (u *user) refuses(d *command, args []string) any {
	switch u.check(d, args) {
	case deniedCommand:
		return errorf("NOPERM this user has no permissions to run the '%s' command", d.name)
	case deniedKey:
		return replyError("NOPERM this user has no permissions to access one of the keys used as arguments")
	case deniedChannel:
		return replyError("NOPERM this user has no permissions to access one of the channels used as arguments")
	}
	return nil
}

// refusesInScript is check for a command of a script.
func (u *user) refusesInScript(d *command, args []string) any {
	switch u.check(d, args) {
	case deniedCommand:
		return replyError("ERR The user executing the script can't run this command or subcommand")
	case deniedKey:
		return replyError("ERR The user executing the script can't access at least one of the keys mentioned in the command arguments")
	case deniedChannel:
		return replyError("ERR The user executing the script can't publish to the channel mentioned in the command")
	}
	return nil
}

// setUserLocked makes or changes a user by rules of ACL SETUSER: on, off, >password, nopass, ~pattern, &pattern, +command,
// -command, +command|subcommand, +@category, -@category, allkeys, allchannels, reset... A new user may nothing.
func (s *Server) setUserLocked(name string, rules []string) any {
	changed := user{name: name, commands: []string{"-@all"}, keys: map[string]bool{}, channels: map[string]bool{}}
	old := s.users[name]
	if old != nil {
		changed = *old
		changed.keys, changed.channels = maps.Clone(old.keys), maps.Clone(old.channels)
		changed.commands, changed.passwords = slices.Clone(old.commands), slices.Clone(old.passwords)
	}
	for _, rule := range rules {
		if wrong := changed.apply(rule); wrong != nil {
			return wrong
		}
	}
	if old != nil {
		*old = changed // connections keep their user
		s.endDeniedSubscribers(old)
	} else {
		s.users[name] = &changed
	}
	return nil
}

// endDeniedSubscribers ends the connections of a user that are subscribed to what it may not any more.
func (s *Server) endDeniedSubscribers(u *user) {
	for _, c := range s.connsLocked() {
		if c.user != u {
			continue
		}
		denied := false
		for _, all := range []map[string]bool{c.subs, c.shards} {
			for ch := range all {
				denied = denied || !matchesAny(u.channels, ch)
			}
		}
		if denied {
			c.endLocked(true)
		}
	}
}

func (s *Server) authenticate(c *conn, name, password string) any {
	u := s.users[name]
	if u == nil || !u.enabled || !u.nopass && !slices.Contains(u.passwords, password) {
		return replyError("WRONGPASS invalid username-password pair or user is disabled.")
	}
	c.user = u
	return nil
}

func cmdAclSetuser(s *Server, _ *conn, a []string) any {
	if wrong := s.setUserLocked(a[2], a[3:]); wrong != nil {
		return wrong
	}
	return statusOK
}

func cmdAuth(s *Server, c *conn, a []string) any {
	name, password := "default", a[1]
	switch {
	case len(a) > 3:
		return syntaxErr
	case len(a) == 3:
		name, password = a[1], a[2]
	case s.users["default"].nopass:
		return replyError("ERR AUTH <password> called without any password configured for the default user. Are you sure your configuration is correct?")
	}
	if wrong := s.authenticate(c, name, password); wrong != nil {
		return wrong
	}
	return statusOK
}

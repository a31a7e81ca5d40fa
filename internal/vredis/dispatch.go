package vredis

import (
	"slices"
	"strings"
)

// command is one that the server knows, as COMMAND INFO of Redis 7.0 describes it.
type command struct {
	name              string
	arity             int // negative: at least so many
	flags             string
	first, last, step int // where its keys are
	categories        string
	run               func(s *Server, c *conn, a []string) any // a[0] is the command; nil: see its subcommands
}

func (d *command) has(flag string) bool { return hasWord(d.flags, flag) }

func hasWord(list, word string) bool {
	for w := range strings.FieldsSeq(list) {
		if w == word {
			return true
		}
	}
	return false
}

var commands map[string]*command

// fillCommands makes the map of the table.
func fillCommands() {
	commands = map[string]*command{}
	for i := range commandTable {
		d := &commandTable[i]
		commands[d.name] = d
	}
}

// lookup finds a command and checks how many arguments it has.
func lookup(args []string) (*command, any) {
	name := strings.ToLower(args[0])
	d := commands[name]
	if d == nil {
		var b strings.Builder
		for _, a := range args[1:] {
			if b.Len() >= 128 {
				break
			}
			b.WriteString("'" + a[:min(len(a), 128-b.Len())] + "' ")
		}
		return nil, errorf("ERR unknown command '%.128s', with args beginning with: %s", args[0], b.String())
	}
	if d.run == nil && len(args) > 1 {
		sub := commands[name+"|"+strings.ToLower(args[1])]
		if sub == nil {
			return nil, errorf("ERR unknown subcommand '%.128s'. Try %s HELP.", args[1], strings.ToUpper(name))
		}
		d = sub
	}
	if d.arity > 0 && len(args) != d.arity || len(args) < -d.arity {
		return nil, errorf("ERR wrong number of arguments for '%s' command", d.name)
	}
	return d, nil
}

// keysOf returns the keys of a command.
func (d *command) keysOf(args []string) []string {
	if strings.HasPrefix(d.name, "eval") {
		if n := atoi(args[2]); n > 0 && n <= len(args)-3 {
			return args[3 : 3+n]
		}
		return nil
	}
	if d.first == 0 || hasWord(d.categories, "pubsub") { // a channel is no key
		return nil
	}
	last := d.last
	if last < 0 {
		last += len(args)
	}
	var keys []string
	for i := d.first; i <= last && i < len(args); i += d.step {
		keys = append(keys, args[i])
	}
	return keys
}

// serve executes one command of a client.
func (s *Server) serve(c *conn, args []string) any {
	now := s.now()
	s.db.advance(now.UnixMilli())
	d, wrong := lookup(args)
	if wrong == nil && c.user == nil && !d.has("no_auth") {
		wrong = replyError("NOAUTH Authentication required.")
	}
	if wrong == nil && c.user != nil {
		wrong = c.user.refuses(d, args)
	}
	if wrong == nil {
		wrong = s.refuses(c, d)
	}
	if wrong == nil && c.proto == 2 && c.subscribed() && !slices.Contains([]string{"ping", "subscribe", "ssubscribe", "unsubscribe", "sunsubscribe"}, d.name) {
		wrong = errorf("ERR Can't execute '%s': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context", d.name)
	}
	if wrong != nil {
		if strings.EqualFold(args[0], "exec") {
			c.inMulti, c.multi = false, nil
			wrong = errorf("EXECABORT Transaction discarded because of: %s", strings.TrimPrefix(string(wrong.(replyError)), "ERR "))
		} else if c.inMulti {
			c.spoiled = true
		}
		s.executed(c, args, wrong)
		return wrong
	}
	if c.inMulti && !slices.Contains([]string{"exec", "discard", "multi", "quit", "reset"}, d.name) {
		if d.has("no_multi") {
			c.spoiled = true
			return errorf("ERR Command not allowed inside a transaction")
		}
		c.multi = append(c.multi, args)
		return status("QUEUED")
	}
	return s.run(c, d, args)
}

// run executes a command that nothing refuses.
func (s *Server) run(c *conn, d *command, args []string) any {
	if d.has("write") {
		s.db.dirty++
	}
	reply := d.run(s, c, args)
	s.executed(c, args, reply)
	return reply
}

func (s *Server) executed(c *conn, args []string, reply any) {
	s.calls[strings.ToLower(args[0])]++
	if s.log == nil {
		return
	}
	err, _ := reply.(replyError)
	s.log(Executed{Client: c.id, Name: c.name, Lua: s.call != nil, Args: args, Err: string(err)})
}

func cmdMulti(_ *Server, c *conn, _ []string) any {
	if c.inMulti {
		return replyError("ERR MULTI calls can not be nested")
	}
	c.inMulti, c.spoiled, c.multi = true, false, nil
	return statusOK
}

func cmdDiscard(_ *Server, c *conn, _ []string) any {
	if !c.inMulti {
		return replyError("ERR DISCARD without MULTI")
	}
	c.inMulti, c.multi = false, nil
	return statusOK
}

func cmdExec(s *Server, c *conn, _ []string) any {
	if !c.inMulti {
		return replyError("ERR EXEC without MULTI")
	}
	queued := c.multi
	c.inMulti, c.multi = false, nil
	if c.spoiled {
		return replyError("EXECABORT Transaction discarded because of previous errors.")
	}
	replies := []any{}
	for _, args := range queued {
		d, wrong := lookup(args)
		if wrong == nil {
			wrong = c.user.refuses(d, args)
		}
		if wrong == nil {
			wrong = s.run(c, d, args)
		}
		replies = append(replies, wrong)
	}
	return replies
}

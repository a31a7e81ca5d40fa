package vredis

import (
	"maps"
	"slices"
)

// registry says which connections listen to which channel; guarded by Server.mu.
type registry struct {
	plain, shard map[string]map[*conn]bool
}

func (c *conn) subscribed() bool { return len(c.subs)+len(c.shards) > 0 }

// listening is one of the two kinds of subscription.
type listening struct {
	kind string // of the messages: "" or "s"
	mine func(c *conn) *map[string]bool
}

var (
	plainly = listening{"", func(c *conn) *map[string]bool { return &c.subs }}
	sharded = listening{"s", func(c *conn) *map[string]bool { return &c.shards }}
)

func (s *Server) index(l listening) map[string]map[*conn]bool {
	if l.kind == "s" {
		return s.pubsub.shard
	}
	return s.pubsub.plain
}

func (s *Server) subscribe(c *conn, l listening, channels []string) any {
	mine := l.mine(c)
	for _, ch := range channels {
		if *mine == nil {
			*mine = map[string]bool{}
		}
		if !(*mine)[ch] {
			(*mine)[ch] = true
			at := s.index(l)
			if at[ch] == nil {
				at[ch] = map[*conn]bool{}
			}
			at[ch][c] = true
		}
		c.sendLocked(pushReply{l.kind + "subscribe", ch, integer(len(*l.mine(c)))})
	}
	return silent{}
}

func (s *Server) drop(c *conn, l listening, ch string) {
	mine := *l.mine(c)
	if !mine[ch] {
		return
	}
	delete(mine, ch)
	at := s.index(l)
	delete(at[ch], c)
	if len(at[ch]) == 0 {
		delete(at, ch)
	}
}

func (s *Server) unsubscribe(c *conn, l listening, channels []string) any {
	if len(channels) == 0 {
		channels = slices.Sorted(maps.Keys(*l.mine(c)))
		if len(channels) == 0 {
			c.sendLocked(pushReply{l.kind + "unsubscribe", nil, integer(len(*l.mine(c)))})
		}
	}
	for _, ch := range channels {
		s.drop(c, l, ch)
		c.sendLocked(pushReply{l.kind + "unsubscribe", ch, integer(len(*l.mine(c)))})
	}
	return silent{}
}

// forgetSubscriber ends all subscriptions of a connection that has ended.
func (s *Server) forgetSubscriber(c *conn) {
	for _, l := range []listening{plainly, sharded} {
		for _, ch := range slices.Collect(maps.Keys(*l.mine(c))) {
			s.drop(c, l, ch)
		}
	}
}

// publish sends a message to those who listen and returns how many do.
func (s *Server) publish(l listening, channel, message string) any {
	to := slices.SortedFunc(maps.Keys(s.index(l)[channel]), func(a, b *conn) int { return int(a.id - b.id) })
	for _, c := range to {
		c.sendLocked(pushReply{l.kind + "message", channel, message})
	}
	return integer(len(to))
}

func cmdSubscribe(s *Server, c *conn, a []string) any    { return s.subscribe(c, plainly, a[1:]) }
func cmdSsubscribe(s *Server, c *conn, a []string) any   { return s.subscribe(c, sharded, a[1:]) }
func cmdUnsubscribe(s *Server, c *conn, a []string) any  { return s.unsubscribe(c, plainly, a[1:]) }
func cmdSunsubscribe(s *Server, c *conn, a []string) any { return s.unsubscribe(c, sharded, a[1:]) }
func cmdPublish(s *Server, _ *conn, a []string) any      { return s.publish(plainly, a[1], a[2]) }
func cmdSpublish(s *Server, _ *conn, a []string) any     { return s.publish(sharded, a[1], a[2]) }

func cmdPubsubChannels(s *Server, _ *conn, a []string) any      { return s.channels(plainly, a) }
func cmdPubsubShardchannels(s *Server, _ *conn, a []string) any { return s.channels(sharded, a) }

func (s *Server) channels(l listening, a []string) any {
	if len(a) > 3 {
		return errorf("ERR unknown subcommand or wrong number of arguments for '%.128s'. Try PUBSUB HELP.", a[1])
	}
	all := []any{}
	for _, ch := range slices.Sorted(maps.Keys(s.index(l))) {
		if len(a) < 3 || match(a[2], ch) {
			all = append(all, ch)
		}
	}
	return all
}

func (s *Server) numsub(l listening, channels []string) any {
	all := []any{}
	for _, ch := range channels {
		all = append(all, ch, integer(len(s.index(l)[ch])))
	}
	return all
}

func cmdPubsubNumsub(s *Server, _ *conn, a []string) any      { return s.numsub(plainly, a[2:]) }
func cmdPubsubShardnumsub(s *Server, _ *conn, a []string) any { return s.numsub(sharded, a[2:]) }

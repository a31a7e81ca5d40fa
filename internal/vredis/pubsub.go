package vredis

import (
	"maps"
	"slices"
)

// registry says which connections listen to which channel; guarded by Server.mu.
type registry struct {
	plain, shard map[string]map[*conn]bool
	patterns     []listener // in the order of subscription
}

type listener struct {
	pattern string
	c       *conn
}

func (c *conn) subscribed() bool { return len(c.subs)+len(c.patterns)+len(c.shards) > 0 }

// listening is one of the three kinds of subscription.
type listening struct {
	kind string // of the messages: "", "p" or "s"
	mine func(c *conn) *map[string]bool
}

var (
	plainly   = listening{"", func(c *conn) *map[string]bool { return &c.subs }}
	byPattern = listening{"p", func(c *conn) *map[string]bool { return &c.patterns }}
	sharded   = listening{"s", func(c *conn) *map[string]bool { return &c.shards }}
)

func (s *Server) index(l listening) map[string]map[*conn]bool {
	if l.kind == "s" {
		return s.pubsub.shard
	}
	return s.pubsub.plain
}

func (c *conn) count(l listening) int64 {
	if l.kind == "s" {
		return integer(len(c.shards))
	}
	return integer(len(c.subs) + len(c.patterns))
}

func (s *Server) subscribe(c *conn, l listening, channels []string) any {
	mine := l.mine(c)
	for _, ch := range channels {
		if *mine == nil {
			*mine = map[string]bool{}
		}
		if !(*mine)[ch] {
			(*mine)[ch] = true
			if l.kind == "p" {
				s.pubsub.patterns = append(s.pubsub.patterns, listener{ch, c})
			} else {
				at := s.index(l)
				if at[ch] == nil {
					at[ch] = map[*conn]bool{}
				}
				at[ch][c] = true
			}
		}
		c.sendLocked(pushReply{l.kind + "subscribe", ch, c.count(l)})
	}
	return silent{}
}

func (s *Server) drop(c *conn, l listening, ch string) {
	mine := *l.mine(c)
	if !mine[ch] {
		return
	}
	delete(mine, ch)
	if l.kind == "p" {
		s.pubsub.patterns = slices.DeleteFunc(s.pubsub.patterns, func(x listener) bool { return x.c == c && x.pattern == ch })
		return
	}
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
			c.sendLocked(pushReply{l.kind + "unsubscribe", nil, c.count(l)})
		}
	}
	for _, ch := range channels {
		s.drop(c, l, ch)
		c.sendLocked(pushReply{l.kind + "unsubscribe", ch, c.count(l)})
	}
	return silent{}
}

// forgetSubscriber ends all subscriptions of a connection that has ended.
func (s *Server) forgetSubscriber(c *conn) {
	for _, l := range []listening{plainly, byPattern, sharded} {
		for _, ch := range slices.Collect(maps.Keys(*l.mine(c))) {
			s.drop(c, l, ch)
		}
	}
}

// publish sends a message to those who listen and returns how many do.
func (s *Server) publish(l listening, channel, message string) any {
	n := 0
	to := slices.SortedFunc(maps.Keys(s.index(l)[channel]), func(a, b *conn) int { return int(a.id - b.id) })
	for _, c := range to {
		c.sendLocked(pushReply{l.kind + "message", channel, message})
		n++
	}
	if l.kind == "" {
		for _, x := range s.pubsub.patterns {
			if match(x.pattern, channel) {
				x.c.sendLocked(pushReply{"pmessage", x.pattern, channel, message})
				n++
			}
		}
	}
	return integer(n)
}

func cmdSubscribe(s *Server, c *conn, a []string) any    { return s.subscribe(c, plainly, a[1:]) }
func cmdPsubscribe(s *Server, c *conn, a []string) any   { return s.subscribe(c, byPattern, a[1:]) }
func cmdSsubscribe(s *Server, c *conn, a []string) any   { return s.subscribe(c, sharded, a[1:]) }
func cmdUnsubscribe(s *Server, c *conn, a []string) any  { return s.unsubscribe(c, plainly, a[1:]) }
func cmdPunsubscribe(s *Server, c *conn, a []string) any { return s.unsubscribe(c, byPattern, a[1:]) }
func cmdSunsubscribe(s *Server, c *conn, a []string) any { return s.unsubscribe(c, sharded, a[1:]) }
func cmdPublish(s *Server, _ *conn, a []string) any      { return s.publish(plainly, a[1], a[2]) }
func cmdSpublish(s *Server, _ *conn, a []string) any     { return s.publish(sharded, a[1], a[2]) }

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

func cmdPubsubChannels(s *Server, _ *conn, a []string) any      { return s.channels(plainly, a) }
func cmdPubsubShardchannels(s *Server, _ *conn, a []string) any { return s.channels(sharded, a) }
func cmdPubsubNumsub(s *Server, _ *conn, a []string) any        { return s.numsub(plainly, a[2:]) }
func cmdPubsubShardnumsub(s *Server, _ *conn, a []string) any   { return s.numsub(sharded, a[2:]) }
func cmdPubsubNumpat(s *Server, _ *conn, _ []string) any {
	distinct := map[string]bool{}
	for _, x := range s.pubsub.patterns {
		distinct[x.pattern] = true
	}
	return integer(len(distinct))
}

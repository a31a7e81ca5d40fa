package vredis_test

import (
	"context"
	"fmt"
	"math"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/redistest"
	"github.com/holdfast-go/holdfast/internal/vredis"
)

// side is a server, a real one or vredis, with a client and a subscriber.
type side struct {
	client, sub *wire
	proto       int
}

// pair is both, to be compared.
type pair struct {
	tb    testing.TB
	real  *side
	fake  *side
	clock time.Time // vredis's
	srv   *vredis.Server

	other  bool     // the real server is not Redis 7.0: errors are compared by their codes
	around *trouble // that a list is put in; nil: none
}

// marker is the channel that ends what a subscriber reads.
const marker = "marker"

func newPair(tb testing.TB, proto int, channels []string) *pair {
	p := &pair{tb: tb, clock: time.Now()}
	server := redistest.Start(tb, redistest.WithoutPassword())
	p.other = server.Major() != 7
	p.srv = vredis.New(vredis.Options{Now: func() time.Time { return p.clock }})
	p.real = newSide(tb, proto, channels, func() (net.Conn, error) { return net.Dial("tcp", server.Addr()) })
	p.fake = newSide(tb, proto, channels, func() (net.Conn, error) { return p.srv.Dial(context.Background(), "", "") })
	return p
}

func newSide(tb testing.TB, proto int, channels []string, dial func() (net.Conn, error)) *side {
	open := func() *wire {
		c, err := dial()
		redistest.Must(tb, err)
		w := newWire(tb, c)
		w.do("hello", strconv.Itoa(proto))
		return w
	}
	s := &side{open(), open(), proto}
	for _, ch := range append([]string{marker}, channels...) {
		s.sub.do("subscribe", ch)
		s.sub.do("ssubscribe", ch)
	}
	return s
}

// run executes a list and returns the replies, then the state, then the messages.
func (s *side) run(list [][]string, keys []string) (replies, state, messages []string) {
	var dump [][]string
	for _, k := range keys {
		dump = append(dump, [][]string{{"type", k}, {"get", k}, {"hgetall", k}, {"lrange", k, "0", "-1"}, {"smembers", k}, {"zrange", k, "0", "-1", "withscores"}, {"pttl", k}}...)
	}
	s.client.send(slices.Concat(list, dump, [][]string{{"publish", marker, "end"}})...)
	for range list {
		replies = append(replies, s.client.read())
	}
	for range dump {
		state = append(state, s.client.read())
	}
	s.client.read()
	for {
		m := s.sub.read()
		if strings.Contains(m, `"`+marker+`" "end"`) {
			return replies, state, messages
		}
		messages = append(messages, m)
	}
}

// align sets vredis's clock by that of the real server.
func (p *pair) align() {
	reply := p.real.client.do("time")
	f := strings.Fields(strings.Trim(reply, "*[]"))
	if len(f) != 2 {
		p.tb.Fatalf("the server answers TIME with %s: an earlier command had not one reply", reply)
	}
	sec, _ := strconv.ParseInt(strings.Trim(f[0], `"`), 10, 64)
	micro, _ := strconv.ParseInt(strings.Trim(f[1], `"`), 10, 64)
	p.clock = time.Unix(sec, micro*1000)
}

// apart is how far apart times may be that are the same.
const apart = 300 * time.Millisecond

// mostTries is how often a list is run on a machine that stands still again and again, before its differences count.
const mostTries = 30

// compare runs a list on both and returns the first difference. A list is repeated before
// it counts as one, and for as long as the machine stands still meanwhile: the real server's clock goes on while a list runs, and vredis's does not.
func (p *pair) compare(setup func(now int64) [][]string, list func(now int64) [][]string, keys []string) string {
	var difference string
	for tries, steady := 0, 0; steady < 3; tries++ {
		began := time.Now()
		p.align()
		now := p.clock.UnixMilli()
		calls := list(now)
		if p.around != nil {
			calls = slices.Concat(p.around.from, calls, p.around.to)
		}
		commands := p.comparable(slices.Concat([][]string{{"flushall"}}, setup(now), calls))
		r1, s1, m1 := p.real.run(commands, keys)
		if time.Since(began) < apart || tries >= mostTries {
			steady++
		}
		r2, s2, m2 := p.fake.run(commands, keys)
		difference = ""
		for i, c := range commands {
			if !p.alike(c, r1[i], r2[i]) {
				difference = fmt.Sprintf("reply to %q\n  real:   %s\n  vredis: %s", c, r1[i], r2[i])
				break
			}
		}
		for i := range s1 {
			if difference == "" && !alike([]string{"smembers"}, s1[i], s2[i]) {
				difference = fmt.Sprintf("state %d of key %s\n  real:   %s\n  vredis: %s", i%7, keys[i/7], s1[i], s2[i])
			}
		}
		if difference == "" && (len(m1) != len(m2) || !alike(nil, strings.Join(m1, "\n"), strings.Join(m2, "\n"))) {
			difference = fmt.Sprintf("messages\n  real:   %s\n  vredis: %s", m1, m2)
		}
		if difference == "" {
			return ""
		}
		var b strings.Builder
		for i, c := range commands {
			fmt.Fprintf(&b, "\n    %q -> %s", c, r1[i])
		}
		difference += "\n  after" + b.String()
	}
	return difference
}

var (
	numbers   = regexp.MustCompile(`\d+`)
	grantTime = regexp.MustCompile(`g (\d+) (\d+) (\d{10}) (\d+) `)
	luaError  = regexp.MustCompile(`-ERR user_script:\d+: .*? (script: \w+, on @user_script:\d+\.)`)
)

// errorText is an error's text behind its code, also where a script returns it as text.
var errorText = regexp.MustCompile(`(-[A-Z]+|"[A-Z]+) [^"]*`)

// alike reports whether two replies are the same; Valkey has words of its own for some errors.
func (p *pair) alike(cmd []string, a, b string) bool {
	if p.other {
		a, b = errorText.ReplaceAllString(a, "$1"), errorText.ReplaceAllString(b, "$1")
	}
	return alike(cmd, a, b)
}

// differsElsewhere matches commands that other servers than Redis 7.0 answer in another way. Later ones know no hexadecimal numbers,
// no bounds of scores that begin with a space and no cursors that are no numbers, write some floating-point numbers shorter, allow
// WAIT in scripts, queue commands of a MULTI without memory, and know ZRANK WITHSCORE. From Redis 7.2 on, the error of an AUTH is
// lost if the reply to an earlier command has not been written yet (https://github.com/redis/redis/issues/15640). Redis 8.2 splits
// the text that a script raises at its line breaks.
var differsElsewhere = regexp.MustCompile(`0x|scan( k\d)? \D|\d{17}|1e[1-9]\d|1e-7|0\.1|0\.3| -0( |$)|eval.* wait|^multi$|\bz\w+ .*  5|rank \S+ \S+ .|^auth u wrong|error\(argv\[1\]\)[^\n]*\n`)

// comparable are the commands that both servers are to answer alike.
func (p *pair) comparable(list [][]string) [][]string {
	if !p.other {
		return list
	}
	return slices.DeleteFunc(slices.Clone(list), func(c []string) bool {
		return differsElsewhere.MatchString(strings.ToLower(strings.Join(c, " ")))
	})
}

// alike reports whether two replies are the same: but for times, which may be [apart], the order of what has
// none, and Lua's own words for what is wrong.
func alike(cmd []string, a, b string) bool {
	if a == b {
		return true
	}
	a, b = luaError.ReplaceAllString(a, "$1"), luaError.ReplaceAllString(b, "$1")
	if len(cmd) > 0 && slices.Contains([]string{"smembers", "keys", "scan", "pubsub", "exec"}, strings.ToLower(cmd[0])) || len(cmd) > 3 && cmd[0] == "eval" {
		if sorted(a) == sorted(b) {
			return true
		}
	}
	if len(cmd) > 0 && strings.EqualFold(cmd[0], "scan") && !(strings.HasPrefix(a, `*["0"`) && strings.HasPrefix(b, `*["0"`)) {
		return strings.HasPrefix(a, `*["`) && strings.HasPrefix(b, `*["`) // more is to come: each in its own order
	}
	a, b = grantTime.ReplaceAllString(a, "g $1 $2 ${3}000 "), grantTime.ReplaceAllString(b, "g $1 $2 ${3}000 ")
	if numbers.ReplaceAllString(a, "#") != numbers.ReplaceAllString(b, "#") {
		return false
	}
	x, y := numbers.FindAllString(a, -1), numbers.FindAllString(b, -1)
	for i := range x {
		if x[i] == y[i] {
			continue
		}
		m, _ := strconv.ParseFloat(x[i], 64)
		n, _ := strconv.ParseFloat(y[i], 64)
		slack := float64(apart.Milliseconds())
		if m > 1e12 && m < 3e12 && len(x[i]) == 13 { // seconds that became milliseconds
			slack = 1001
		}
		if m > 1.6e9 && m < 2.2e9 || len(cmd) > 0 && strings.EqualFold(cmd[0], "ttl") {
			slack = 2
		} else if max(m, n) < 1000 {
			return false
		}
		if math.Abs(m-n) > slack {
			return false
		}
	}
	return true
}

func sorted(s string) string {
	words := strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(" []*~%", r) })
	slices.Sort(words)
	return strings.Join(words, " ")
}

// A machine that stands still while a list runs makes no difference.
func TestPair_OnAMachineThatStandsStill(t *testing.T) {
	t.Parallel()
	p, stalls := newPair(t, 2, nil), 5
	list := func(now int64) [][]string {
		if stalls--; stalls >= 0 {
			time.Sleep(2 * apart)
		}
		return [][]string{{"set", "k0", "v", "pxat", fmt.Sprint(now + 10_000)}}
	}
	if d := p.compare(nothing, list, fuzzedKeys); d != "" || stalls >= 0 {
		t.Errorf("%d stalls are left: %s", stalls, d)
	}
}

package explore

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/internal/command"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/vredis"
)

// redis runs scripts, and remembers what came of them: a search runs the same ones again and again.
type redis struct {
	bare  *vredis.Bare
	texts map[string]*vredis.Loaded // by their names, or what they say
	known map[question]*answer
	empty vredis.Database // with which each world begins: what is known is known of a database
}

// question is a script at a moment.
type question struct {
	db        *vredis.Database
	at        int64
	script    *vredis.Loaded
	listening string
	args      string
}

type answer struct {
	reply any
	after *vredis.Database
	sent  []vredis.Message
}

// remembered is how many answers are kept: so much memory as that takes.
const remembered = 50_000

func newRedis() *redis {
	return &redis{bare: vredis.NewBare(), texts: map[string]*vredis.Loaded{}, known: map[question]*answer{}}
}

// run runs one of the library's scripts.
func (r *redis) run(db *vredis.Database, at time.Time, listening []string, script *command.Script, args []any) *answer {
	keys, argv := texts(args)
	x := r.texts[script.Name()]
	if x == nil {
		x = r.bare.Load(protocol.Text(script.Name()))
		r.texts[script.Name()] = x
	}
	return r.ask(db, at, listening, x, keys, argv)
}

// raw runs a script that is not the library's.
func (r *redis) raw(db *vredis.Database, at time.Time, listening []string, text string, keys, args []string) *answer {
	x := r.texts[text]
	if x == nil {
		x = r.bare.Load(text)
		r.texts[text] = x
	}
	return r.ask(db, at, listening, x, keys, args)
}

func (r *redis) ask(db *vredis.Database, at time.Time, listening []string, x *vredis.Loaded, keys, args []string) *answer {
	q := question{db, at.UnixNano(), x, strings.Join(listening, " "), strings.Join(keys, "\x00") + "\x00\x00" + strings.Join(args, "\x00")}
	a := r.known[q]
	if a == nil {
		a = new(answer)
		a.reply, a.after, a.sent = r.bare.Run(db, at, listening, x, keys, args)
		if len(r.known) >= remembered {
			clear(r.known)
		}
		r.known[q] = a
	}
	return a
}

// texts are the keys and the other arguments of a script that is called with args.
func texts(args []any) (keys, argv []string) {
	all := make([]string, len(args)-3)
	for i, a := range args[3:] {
		all[i] = argument(a)
	}
	n := args[2].(int)
	return all[:n], all[n:]
}

// argument is what go-redis makes of an argument.
func argument(a any) string {
	switch a := a.(type) {
	case string:
		return a
	case int:
		return strconv.Itoa(a)
	case int64:
		return strconv.FormatInt(a, 10)
	case uint64:
		return strconv.FormatUint(a, 10)
	case uint8:
		return strconv.FormatUint(uint64(a), 10)
	}
	panic(fmt.Sprintf("an argument of %T", a))
}

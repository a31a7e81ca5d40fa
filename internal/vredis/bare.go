package vredis

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// Bare runs scripts on databases, without connections and without a clock of its own: for package explore. Calls
// follow one another.
type Bare struct {
	srv    *Server
	caller *conn
	at     time.Time // of the script that runs
	sent   []Message // by it
}

// Message is one that a script has published.
type Message struct{ Channel, Payload string }

// NewBare returns one that knows no script yet.
func NewBare() *Bare {
	b := &Bare{}
	b.srv = New(Options{Now: func() time.Time { return b.at }, Log: b.heard})
	b.caller = &conn{srv: b.srv, proto: 3, user: newUser("default", "")}
	return b
}

func (b *Bare) heard(x Executed) {
	if x.Lua && x.Err == "" && strings.EqualFold(x.Args[0], "publish") {
		b.sent = append(b.sent, Message{x.Args[1], x.Args[2]})
	}
}

// Loaded is a script that Bare can run.
type Loaded struct{ script *script }

// Load compiles a script, which must have no error of syntax.
func (b *Bare) Load(text string) *Loaded {
	sc, wrong := b.srv.load(text)
	if wrong != nil {
		panic(wrong)
	}
	return &Loaded{sc}
}

// Run executes a script at a time on a database, which it leaves as it is. Each channel of listening has one listener, or as many as
// it stands there. It returns the reply as a client reads it, the database after it, and the messages that were sent.
func (b *Bare) Run(s *Database, at time.Time, listening []string, x *Loaded, keys, args []string) (reply any, after *Database, sent []Message) {
	b.at, b.sent = at, nil
	db := make(map[string]*entry, len(s.keys)+2)
	for key, e := range s.keys {
		if !e.isOver(at) {
			db[key] = e.clone()
		}
	}
	b.srv.db = keyspace{keys: db, millis: at.UnixMilli()}
	clear(b.srv.pubsub.plain)
	for _, channel := range listening {
		all := b.srv.pubsub.plain[channel]
		if all == nil {
			all = map[*conn]bool{}
			b.srv.pubsub.plain[channel] = all
		}
		all[&conn{srv: b.srv, id: int64(len(all)), proto: 3}] = true
	}
	b.srv.call = &invocation{caller: b.caller, now: at}
	reply = plain(b.srv.lua.run(x.script, keys, args))
	b.srv.call = nil
	return reply, &Database{keys: b.srv.db.keys}, b.sent
}

// Database is what a server has at a time. It does not change. The zero value is empty. One goroutine uses it.
type Database struct {
	keys map[string]*entry
	list []Key // all of them, once Keys was asked
}

// isOver reports whether the key has expired.
func (e *entry) isOver(at time.Time) bool { return e.expires != 0 && e.expires <= at.UnixMilli() }

// Key is what a key holds.
type Key struct {
	Name, Kind string
	Text       string   // of a string
	List       []string // of a list; of a hash the fields and their values in turn; of a sorted set the members
	Scores     []float64
	Expires    int64 // server milliseconds; 0: never
}

// Keys returns what is there at a time, in the order of the names. It is not to be changed.
func (s *Database) Keys(at time.Time) []Key {
	if s.list == nil {
		s.list = s.all()
	}
	over := func(k Key) bool { return k.Expires != 0 && k.Expires <= at.UnixMilli() }
	if slices.ContainsFunc(s.list, over) {
		return slices.DeleteFunc(slices.Clone(s.list), over)
	}
	return s.list
}

func (s *Database) all() (all []Key) {
	for _, name := range slices.Sorted(maps.Keys(s.keys)) {
		e := s.keys[name]
		k := Key{Name: name, Kind: e.kind, Text: e.str, List: e.list, Expires: e.expires}
		if e.hash != nil {
			for field, value := range e.hash.all {
				k.List = append(k.List, field, value)
			}
		}
		if e.zset != nil {
			for _, x := range e.zset.order {
				k.List, k.Scores = append(k.List, x.member), append(k.Scores, x.score)
			}
		}
		all = append(all, k)
	}
	return all
}

// Field returns the value of a field of a hash; false: there is none at that time.
func (s *Database) Field(key, field string, at time.Time) (string, bool) {
	if e := s.keys[key]; e != nil && e.hash != nil && !e.isOver(at) {
		return e.hash.get(field)
	}
	return "", false
}

// Has reports whether a key is there at a time.
func (s *Database) Has(key string, at time.Time) bool {
	e := s.keys[key]
	return e != nil && !e.isOver(at)
}

// Without returns the database without a key.
func (s *Database) Without(key string) *Database {
	keys := maps.Clone(s.keys)
	delete(keys, key)
	return &Database{keys: keys}
}

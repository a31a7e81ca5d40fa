package vredis_test

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/internal/vredis"
)

// branch is one way through a script: what is there before, the call, its reply, and what is there then. The state's commands
// and the call are a client's. In the texts stand
//
//	$1 $2 $4 $3  ids of Holdfast, the first three of one process; $R and $S two of Redisson
//	$w           behind the id of a writer
//	$l $m        two more ids of Holdfast, of the processes of $1 and $3, that may linger
//	$h           another one of the process of $3, which hears that the lock is wanted
//	$Q $D        the queue of the mutex or fair lock x, and the zset that belongs to it
//	$V $E        those of the read-write lock x
//	$B $C        the tombstones and the fencing counter
//	%1 %2 %3 %R  the keys that the rights of $1, $2, $3 and $R end with
//	$I $J        the inboxes of the processes of $1 and $3
//	$K $L        Redisson's channels of a mutex and of a read-write lock
//	$P           what a process says of itself
//	$N           what the leader says, and the channel on which that is told
//	$H $G $F $M  of a semaphore: the permits that are held, the queue, the zset that belongs to it, and Redisson's channel
//	$p1 $q1 $r1  permits of the processes of $1 and $3, and of Redisson, by their numbers
//	T T+6000     the server's time in milliseconds, which stands still, and a later one; S is that in seconds
type branch struct {
	name   string
	state  []string // commands
	script string
	argv   []string
	reply  string
	after  map[string]string // command -> reply; and the messages under "sent", where there are any
}

const (
	mine   = heardManager + "1"
	also   = heardManager + "2"
	others = deafManager + "3"
)

// letters are what the words of a branch stand for.
var letters = strings.NewReplacer("$Q", "redisson_lock_queue:{x}", "$D", "redisson_lock_timeout:{x}", "$B", "holdfast_tombstones:{x}", "$C", "redisson_lock_token:{x}",
	"$I", "holdfast_inbox:"+strings.Trim(heardManager, "hf-:"), "$J", "holdfast_inbox:"+strings.Trim(deafManager, "hf-:"), "$K", "redisson_lock__channel:{x}", "$L", "redisson_rwlock:{x}",
	"$1", mine, "$2", also, "$3", others, "$4", heardManager+"4", "$P", "holdfast_process:1", "$N", "holdfast_leader:{x}", "$R", redissonIDs[0], "$S", redissonIDs[1],
	"$l", heardManager+"05", "$m", deafManager+"06", "$h", deafManager+"007",
	"$H", "{x}:timeout", "$G", "holdfast_permit_queue:{x}", "$F", "holdfast_permit_timeout:{x}", "$M", "redisson_sc:{x}",
	"$V", "holdfast_rw_queue:{x}", "$E", "holdfast_rw_timeout:{x}", "$w", ":write",
	"%1", "{x}:"+mine+":rwlock_timeout:1", "%2", "{x}:"+also+":rwlock_timeout:1", "%3", "{x}:"+others+":rwlock_timeout:1", "%R", "{x}:"+redissonIDs[0]+":rwlock_timeout:1")

var branches = slices.Concat(lockBranches, queueBranches, rwBranches, permitBranches, electionBranches, toolBranches)

func leaving(offer, late string, tails ...string) []string {
	return append([]string{"publish", offer, "60000", late, heardManager}, tails...)
}

func staying(id, stays, burial string) []string {
	return []string{id, stays, "900", "publish", "ch", burial}
}

func attaching(id, before string) []string { return []string{id, "30000", before} }

// forcing are the arguments of force_release: any holder's, or only the owner's.
func forcing(owner ...string) []string {
	return append([]string{"publish", "$K", "$L", "$M"}, owner...)
}

// overdue are so many waiters whose time is over, dead those whose process is dead.
func overdue(queue string, n int) []string { return crowd(queue, 1000, n, "1") }
func dead(queue string, n int) []string    { return crowd(queue, 5000, n, "T+6000") }

func crowd(queue string, from, n int, time string) []string {
	list, times := "rpush "+queue, "zadd "+strings.NewReplacer("$Q", "$D", "$V", "$E", "$G", "$F").Replace(queue)
	for number := from; number < from+n; number++ {
		id := fmt.Sprint(deafManager, number)
		if queue == "$G" {
			id += ":1"
		}
		list += " " + id
		times += " " + time + " " + id
	}
	return []string{list, times}
}

// said is what a process has said of itself, in n fields.
func said(n int) []string {
	all := "hset $P"
	for i := range n {
		all += fmt.Sprint(" field", i, " value")
	}
	return []string{all}
}

func releasing(id, offer string) []string { return []string{id, "publish", offer} }

var permit = regexp.MustCompile(`\$[pqr]\d+`)

// permitOf returns the 16 bytes of a permit.
func permitOf(word string) string {
	number, _ := strconv.ParseUint(word[2:], 10, 48)
	manager := map[byte]string{'p': heardManager, 'q': deafManager}[word[1]]
	if manager == "" {
		return fmt.Sprintf("Redisson's%06d", number)
	}
	digits, _ := hex.DecodeString(strings.ReplaceAll(manager, "-", "")[2:22])
	return string(digits) + string(binary.BigEndian.AppendUint64(nil, number)[2:])
}

// raised is what Redis puts behind an error that ends a script.
var raised = regexp.MustCompile(` script: [0-9a-f]{40}, on @user_script:\d+\.$`)

var moment = regexp.MustCompile(`\bT(\+[\d.]+)?\b`)

// spell writes the words of a branch out, in the given second.
func spell(text string, second int64) string {
	text = moment.ReplaceAllStringFunc(letters.Replace(text), func(t string) string {
		whole, half, _ := strings.Cut(t[1:], ".")
		later, _ := strconv.ParseInt(whole, 10, 64)
		if half != "" {
			half = "." + half
		}
		return strconv.FormatInt(second*1000+later, 10) + half
	})
	text = strings.ReplaceAll(text, " S ", fmt.Sprintf(" %d ", second))
	return permit.ReplaceAllStringFunc(text, permitOf) // at last: an id can have any bytes
}

// How a caller waits, see lock_acquire.lua.
const (
	none  = "none heard 0 2000 1 0 publish"
	waits = "new heard 10000 2000 1 0 publish"
	again = "same heard 10000 2000 1 0 publish"
	asks  = "ask heard 10000 2000 1 0 publish"
)

// What Redis says of a command that the user may not run, and of a write on a replica.
const (
	denied  = "ERR The user executing the script can't run this command or subcommand"
	replica = "READONLY You can't write against a read only replica."
)

// Each row is one way through a script: the state before, the call, its reply, and what is there then. The script touches no key that is
// not among its KEYS: servers and proxies that go by these would refuse it, or send it elsewhere.
func TestScripts_Branches(t *testing.T) {
	scripts := libraryScripts(t)
	for _, b := range branches {
		t.Run(strings.ReplaceAll(b.name, " ", "_"), func(t *testing.T) {
			for _, d := range b.run(t, scripts, nil) {
				t.Error(d)
			}
		})
	}
}

// run makes the state, calls the script, and returns what is not as the row says. If trace is not nil, it is called with each
// line of the script that is executed.
func (b *branch) run(t *testing.T, scripts map[string]string, trace func(line int)) (differences []string) {
	synctest.Test(t, func(t *testing.T) {
		var sent, keys []string
		s := vredis.New(vredis.Options{Log: func(e vredis.Executed) {
			if name := strings.ToLower(e.Args[0]); e.Lua && e.Err == "" && strings.HasSuffix(name, "publish") {
				sent = append(sent, strings.Join(e.Args[1:], " "))
			}
			for _, key := range vredis.KeysOf(e.Args) {
				if e.Lua && !slices.Contains(keys, key) && !b.isOthersRight(key) {
					differences = append(differences, fmt.Sprintf("%q touches %q, which is not among KEYS", e.Args, key))
				}
			}
		}})
		defer s.Stop()
		if trace != nil {
			s.Trace(trace)
		}
		time := s.Do("time").([]any)
		seconds, _ := strconv.ParseInt(time[0].(string), 10, 64)
		text := func(of string) string { return spell(of, seconds) }
		// State and call are a client's: what the state forbids, the call may not do.
		rdb := redis.NewClient(&redis.Options{Addr: s.Addr(), Dialer: s.Dial, MaxRetries: -1})
		defer rdb.Close()
		do := func(words []string) any {
			args := make([]any, len(words))
			for i, word := range words {
				args[i] = word
			}
			reply, err := rdb.Do(t.Context(), args...).Result()
			if err != nil {
				return err
			}
			return reply
		}
		for _, command := range b.state {
			words := strings.Fields(text(command))
			if words[0] == "subscribe" {
				conn, err := s.Dial(t.Context(), "", "")
				if err != nil {
					t.Fatal(err)
				}
				newWire(t, conn).do(words...)
			} else if err, failed := do(words).(error); failed {
				t.Fatalf("%s: %v", command, err)
			}
		}
		is := func(what string, reply any, want string) {
			if got := raised.ReplaceAllString(fmt.Sprint(reply), ""); got != text(want) {
				differences = append(differences, fmt.Sprintf("%s: %s, want %s", what, got, text(want)))
			}
		}
		call := b.call(scripts)
		for i := range call {
			if i != 1 { // the script
				call[i] = text(call[i])
			}
		}
		n, _ := strconv.Atoi(call[2])
		keys = call[3 : 3+n]
		before, counted := permits(s)
		is(b.script, do(call), b.reply)
		if after, known := permits(s); counted && known && after != before && !strings.HasPrefix(b.script, "permit_set") {
			differences = append(differences, fmt.Sprintf("there are %d permits, and were %d", after, before))
		}
		is("sent", strings.Join(sent, ", "), b.after["sent"])
		for command, reply := range b.after {
			if command != "sent" {
				is(command, s.Do(strings.Fields(text(command))...), reply)
			}
		}
	})
	return differences
}

// permits returns how many permits the semaphore x has, available or held. It reports false if its number is missing or none.
func permits(s *vredis.Server) (int64, bool) {
	number, _ := s.Do("get", "x").(string)
	available, err := strconv.ParseInt(number, 10, 64)
	held, ok := s.Do("zcard", "{x}:timeout").(int64)
	return available + held, ok && err == nil
}

// isOthersRight reports whether key is the right of a reader that a script finds in the lock or its queue: a caller cannot declare the
// rights of other readers.
func (b *branch) isOthersRight(key string) bool {
	name, _, _ := strings.Cut(b.script, " ")
	return strings.Contains(key, ":rwlock_timeout:") && (strings.HasPrefix(name, "rw_") || slices.Contains([]string{"renew_read", "inspect", "stay", "attach"}, name))
}

// call is the command that runs the script.
func (b *branch) call(scripts map[string]string) []string {
	name, more, _ := strings.Cut(b.script, " ")
	fenced := more == "fenced" || strings.HasSuffix(name, "_acquire") && len(b.argv) == 5 && !strings.HasPrefix(name, "permit_")
	queue, tombstones := []string{"x", "$Q", "$D"}, []string{"$B"}
	if strings.HasPrefix(name, "rw_") || more == "rw" {
		queue = []string{"x", "$V", "$E"}
		if writer := strings.HasSuffix(b.argv[0], ":write"); !writer && (name == "stay" || name == "attach") {
			tombstones = []string{"$B", "%1", "%2"}
		} else if !writer {
			queue = append(queue, "%1")
		}
	}
	if fenced {
		tombstones = append(tombstones, "$C")
	}
	keys := append(queue, tombstones...)
	switch name {
	case "renew":
		keys = keys[:1]
	case "renew_read":
		keys = []string{"x", "%1"}
	case "keep":
		keys = keys[:3]
	case "attach":
		keys = append([]string{"x", queue[1]}, tombstones...)
	case "busy":
		keys = keys[:1]
	case "demand":
		keys = keys[1:2]
	case "inspect":
		keys = []string{"x", "$C", "$Q", "$D", "$V", "$E", "$H", "$G", "$F"}
	case "force_release":
		keys = []string{"x", "$Q", "$D", "$V", "$E", "$H", "$G"}
	case "permit_acquire", "permit_release", "permit_stay":
		keys = []string{"x", "$G", "$F", "$H", "$B"}
	case "permit_attach":
		keys = []string{"x", "$G", "$B", "$H"}
	case "permit_set":
		keys = []string{"x", "$G", "$F", "$H"}
	case "permit_renew":
		keys = []string{"x", "$H", "y", "{y}:timeout"}[:2*len(b.argv[1:])]
	case "proclaim":
		keys = []string{"x", "$N"}
	case "leader":
		keys = []string{"x", "$N", "$C"}
	case "introduce", "introduced":
		keys = []string{"$P"}
	case "multi_acquire":
		keys = []string{"x", "$Q", "$D", "$B", "y", "q{y}", "d{y}", "b{y}"}
	}
	return slices.Concat([]string{"eval", scripts[name], fmt.Sprint(len(keys))}, keys, b.argv)
}

package protocol_test

import (
	"fmt"
	"math/rand"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/internal/lock"
	"github.com/holdfast-go/holdfast/internal/protocol"
	"github.com/holdfast-go/holdfast/internal/redistest"
)

// What is put together here is what the scripts take apart.
func TestArguments_AreReadAsTheyAreWritten(t *testing.T) {
	rdb := redistest.Start(t).Admin()
	read := func(library, function, rest, argument string) string {
		t.Helper()
		script := protocol.Function(library, function) + "local all = {" + function + rest + "}\nfor i, part in ipairs(all) do all[i] = type(part) .. ' ' .. part end\nreturn all\n"
		all, err := rdb.Eval(t.Context(), script, nil, argument).StringSlice()
		if err != nil {
			t.Fatalf("%q: %v", argument, err)
		}
		return fmt.Sprintf("%q", all)
	}
	for _, counted := range []bool{false, true} {
		for _, turn := range []int{1, 9, 17} {
			offer := protocol.Offer(7500, turn, counted)
			n := map[bool]int{true: 1}[counted]
			parts := func(publish string) string {
				return fmt.Sprintf("%q", []string{"string 7500", fmt.Sprint("string ", turn), fmt.Sprint("string ", n), "string " + publish})
			}
			if got := read("grant", "offer_of", "(ARGV[1])", offer); got != parts("") {
				t.Errorf("%q is read as %s", offer, got)
			}
			for place, word := range map[lock.Place]string{lock.NoPlace: "none", lock.NewPlace: "new", lock.SamePlace: "same", lock.AskPlace: "ask"} {
				for _, deaf := range []bool{false, true} {
					stand := protocol.Stand(place, deaf, 5000)
					want := []string{"string " + word, "number 6000", "string "}
					if deaf {
						want[1] = "number 6000.5"
					}
					if got := read("place", "place_of", "(ARGV[1], 1000)", stand); got != fmt.Sprintf("%q", want) {
						t.Errorf("%q is read as %s", stand, got)
					}
					for _, publish := range []string{"publish", "spublish"} {
						wait := protocol.Wait(stand, offer, publish)
						want[2] = "string " + offer + " " + publish
						if got := read("place", "place_of", "(ARGV[1], 1000)", wait); got != fmt.Sprintf("%q", want) {
							t.Errorf("%q is read as %s", wait, got)
						}
						if got := read("grant", "offer_of", "(ARGV[1])", offer+" "+publish); got != parts(publish) {
							t.Errorf("%q is read as %s", offer+" "+publish, got)
						}
					}
				}
			}
		}
	}
}

// What come_back in lib/place.lua does to a list, for lists and batches by chance: the batch stands in the list, its
// process's places are in the order of the numbers as far as they have been, those of the others in their order, none has been passed by more than
// have come back, and none stands there twice.
func TestStand_ComeBack(t *testing.T) {
	rdb := redistest.Start(t).Admin()
	script := protocol.Function("place", "come_back") + "come_back(KEYS[1], ARGV)\n"
	id := func(process, number int) string {
		value := ""
		if number%3 == 2 { // some have one, and are as long as those of higher numbers
			value = ":v"[:number%2+1]
		}
		return fmt.Sprintf("hf-11111111-2222-4333-8444-%012d:%d%s", process, number, value)
	}
	numberOf := func(id string) int {
		n, err := strconv.Atoi(strings.Split(id, ":")[1])
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for seed := range int64(2000) {
		chance := rand.New(rand.NewSource(seed))
		var queue, batch []string
		standing, numbers := map[int][]int{}, map[int][]int{}
		for range chance.Intn(40) {
			p := chance.Intn(3)
			number := 1 + chance.Intn(3)
			if n := numbers[p]; len(n) > 0 {
				number += n[len(n)-1]
			}
			numbers[p] = append(numbers[p], number)
			if chance.Intn(3) > 0 {
				queue = append(queue, id(p, number))
				standing[p] = append(standing[p], number)
			}
			if chance.Intn(8) == 0 {
				queue = append(queue, fmt.Sprintf("b0dc7e0a-0000-4000-8000-000000000000:%d", len(queue)))
			}
		}
		for _, number := range numbers[0] {
			if chance.Intn(2) == 0 {
				batch = append(batch, id(0, number))
			}
		}
		if len(batch) == 0 {
			continue
		}
		rdb.Del(t.Context(), "q")
		for _, member := range queue {
			rdb.RPush(t.Context(), "q", member)
		}
		args := make([]any, len(batch))
		for i, member := range batch {
			args[i] = member
		}
		if err := rdb.Eval(t.Context(), script, []string{"q"}, args...).Err(); err != nil && err.Error() != "redis: nil" {
			t.Fatal(err)
		}
		after := rdb.LRange(t.Context(), "q", 0, -1).Val()
		mine := func(list []string) (own, others []string) {
			for _, member := range list {
				if strings.HasPrefix(member, id(0, 0)[:len(id(0, 0))-1]) {
					own = append(own, member)
				} else {
					others = append(others, member)
				}
			}
			return own, others
		}
		was, othersWere := mine(queue)
		want := slices.Clone(was)
		back := 0
		for _, member := range batch {
			if !slices.Contains(want, member) {
				want = append(want, member)
				back++
			}
		}
		slices.SortFunc(want, func(a, b string) int { return numberOf(a) - numberOf(b) })
		own, others := mine(after)
		if !slices.Equal(own, want) || !slices.Equal(others, othersWere) {
			t.Fatalf("seed %d: batch %q\nbefore %q\nafter  %q", seed, batch, queue, after)
		}
		for _, other := range others {
			if passed := slices.Index(after, other) - slices.Index(queue, other); passed > back {
				t.Fatalf("seed %d: %d came back, and %q was passed by %d", seed, back, other, passed)
			}
		}
	}
}

// Replies that the acquire scripts give, with what a later version may add, and some that they do not.
func TestParseVerdict(t *testing.T) {
	held := func(more ...any) []any {
		return append([]any{int64(protocol.AcquireHeld), int64(protocol.StateOpen), int64(50), int64(7), int64(1)}, more...)
	}
	for _, tc := range []struct {
		name  string
		reply any
		want  lock.Reply
		wrong string
		ok    bool
	}{
		{name: "held", reply: held(), want: lock.Reply{Says: lock.Held, State: lock.LeftOpen, TTL: 50 * time.Millisecond, Clock: 7, Foreign: true}, ok: true},
		{name: "held, and more", reply: held("later"), want: lock.Reply{Says: lock.Held, State: lock.LeftOpen, TTL: 50 * time.Millisecond, Clock: 7, Foreign: true}, ok: true},
		{name: "another kind", reply: []any{int64(protocol.AcquireKind), "stock", "a list"}, want: lock.Reply{Says: lock.OtherKind}, wrong: "the key stock holds a list", ok: true},
		{name: "buried", reply: []any{int64(protocol.AcquireBuried)}, want: lock.Reply{Says: lock.Buried}, ok: true},
		{name: "held, cut short", reply: held()[:4]},
		{name: "held, with a text", reply: []any{int64(protocol.AcquireHeld), "1", int64(0), int64(0), int64(0)}},
		{name: "another kind, cut short", reply: []any{int64(protocol.AcquireKind), "stock"}},
		{name: "no code", reply: []any{"OK"}},
		{name: "empty", reply: []any{}},
		{name: "a token", reply: int64(3)},
		{name: "nil", reply: nil},
	} {
		var got lock.Reply
		ok := protocol.ParseVerdict(tc.reply, &got)
		if ok != tc.ok {
			t.Errorf("%s: %v, want %v", tc.name, ok, tc.ok)
			continue
		}
		if wrong := got.Cause; ok && (wrong != nil) != (tc.wrong != "") || ok && wrong != nil && wrong.Error() != tc.wrong {
			t.Errorf("%s: wrong key %v, want %q", tc.name, wrong, tc.wrong)
		}
		if got.Cause = nil; ok && !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%s: %+v, want %+v", tc.name, got, tc.want)
		}
	}
}

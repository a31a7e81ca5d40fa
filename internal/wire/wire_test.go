package wire

import (
	"encoding/hex"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/cryptotest"
	"time"
)

func derivedKeys(name string) []string {
	var keys []string
	for _, k := range []*Keys{NewKeys(name), NewRWKeys(name)} {
		keys = append(keys, k.Lock.(string), k.Token(), k.Tombstones.(string), k.Channel(), k.Queue.(string), k.Deadlines.(string),
			ReadRight(name, "hf-x:1"), FairChannel(k.Channel(), "hf-x:1"))
	}
	for _, x := range append(InspectKeys(name), ForceReleaseKeys(name)...) {
		keys = append(keys, x.(string))
	}
	return keys
}

func TestSlot_KnownValues(t *testing.T) {
	for key, want := range map[string]uint16{"123456789": 0x31C3, "foo": 12182, "{user1000}.following": 3443, "bar{}x": Slot("bar{}x")} {
		if got := Slot(key); got != want {
			t.Errorf("Slot(%q) = %d, want %d", key, got, want)
		}
	}
}

// What Redisson builds, byte for byte.
func TestKeys_AreRedissons(t *testing.T) {
	for _, tc := range []struct{ name, token, channel, queue string }{
		{"x", "redisson_lock_token:{x}", "redisson_lock__channel:{x}", "redisson_lock_queue:{x}"},
		{"a{t}b", "redisson_lock_token:a{t}b", "redisson_lock__channel:a{t}b", "redisson_lock_queue:a{t}b"},
		{"x:y", "redisson_lock_token:{x:y}", "redisson_lock__channel:{x:y}", "redisson_lock_queue:{x:y}"},
	} {
		k := NewKeys(tc.name)
		if k.Lock != tc.name || k.Token() != tc.token || k.Channel() != tc.channel || InspectKeys(tc.name)[2] != tc.queue {
			t.Errorf("keys of %q: %+v", tc.name, k)
		}
	}
}

func TestCheckName(t *testing.T) {
	for _, tc := range []struct {
		name string
		want error
	}{
		{"order:42", nil},
		{"{t}a", nil},
		{"a{t}b", nil},
		{"a{t}{}", nil},
		{"nul\x00\r\n*?[\xff", nil},
		{strings.Repeat("n", maxNameLen), nil},
		{"redisson_lock_queued", nil},
		{"x:rwlock_timeout:y", nil},
		{"", errEmpty},
		{strings.Repeat("n", maxNameLen+1), tooLong(maxNameLen + 1)},
		{"{}x", errSlot},
		{"a{b", errSlot},
		{"a}b", errSlot},
		{"}{", errSlot},
		{"x{}y{z}", errSlot},
		{"{x}", errWhole},
		{"{a{b}", errWhole},
		{"{x}{y}", nil},
		{"redisson_lock_queue:{x}", errReserved},
		{"redisson_lock_timeout:{x}", errReserved},
		{"redisson_lock_token:a{t}b", errReserved},
		{"redisson_unlock_latch:{x}:00", errReserved},
		{"holdfast_tombstones:{x}", errReserved},
		{"{x}:11111111-2222:7:rwlock_timeout:1", errReserved},
	} {
		if got := CheckName(tc.name); got != tc.want {
			t.Errorf("CheckName(%.40q) = %v, want %v", tc.name, got, tc.want)
		}
	}
}

// FuzzName: a name is accepted exactly if all that is derived from it stays in its
// slot; reserved and overlong names aside.
func FuzzName(f *testing.F) {
	for _, s := range []string{"x", "", "{}x", "a{b", "a}b", "}{", "x{}y{z}", "a{t}b", "{{}}", "{a}{", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		err := CheckName(name)
		if err == errEmpty || CheckLength(name) != nil || err == errWhole || err == errReserved {
			return
		}
		same := true
		for _, k := range derivedKeys(name) {
			same = same && Slot(k) == Slot(name)
		}
		if err == nil && !same {
			t.Errorf("%q is accepted and its keys leave its slot", name)
		}
		// Different strings can share a slot by chance, so a refused name is only
		// required to break the rule, not to collide.
		if err == errSlot && staysInSlot(name) {
			t.Errorf("%q is refused", name)
		}
	})
}

// Two names never share a key or a channel.
func FuzzKeys_AreDistinct(f *testing.F) {
	f.Add("a", "b")
	f.Add("a{t}", "{a{t}}")
	f.Add("x", "{x}")
	f.Fuzz(func(t *testing.T, a, b string) {
		if a == b || CheckName(a) != nil || CheckName(b) != nil {
			return
		}
		ka, kb := NewKeys(a), NewKeys(b)
		if ka.Channel() == kb.Channel() || ka.Queue == kb.Queue || ka.Deadlines == kb.Deadlines || ka.Token() == kb.Token() || ka.Tombstones == kb.Tombstones {
			t.Errorf("%q and %q share derived keys", a, b)
		}
	})
}

func TestOwnerID_Shape(t *testing.T) {
	id := NewOwnerPrefix()
	if !regexp.MustCompile(`^hf-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}:$`).MatchString(id) {
		t.Errorf("NewOwnerPrefix() = %q, not the marker, a UUIDv4 and a colon", id)
	}
	if id == NewOwnerPrefix() {
		t.Error("two managers got the same prefix")
	}
	if got, want := OwnerID(id, 1<<63, Marks{}), id+"9223372036854775808"; got != want {
		t.Errorf("OwnerID = %q, want %q", got, want)
	}
	if got, want := OwnerID(id, 7, Marks{Writes: true}), id+"7:write"; got != want {
		t.Errorf("OwnerID of a writer = %q, want %q", got, want)
	}
	if got, want := OwnerID(id, 70, Marks{Wanted: true}), id+"0070"; got != want || Lingers(got) {
		t.Errorf("OwnerID = %q, want %q", got, want)
	}
	if got, want := OwnerID(id, 70, Marks{Lingers: true, Wanted: true, Writes: true}), id+"070:write"; got != want {
		t.Errorf("OwnerID of a writer that lingers = %q, want %q", got, want)
	}
	for owner, lingers := range map[string]bool{
		OwnerID(id, 70, Marks{Lingers: true, Writes: true}): true, OwnerID(id, 1, Marks{Lingers: true}): true, OwnerID(id, 70, Marks{Writes: true}): false, OwnerID(id, 1, Marks{}): false,
		"0c2d3f1e-aaaa-4bbb-8ccc-0123456789ab:01": false, "": false, "hf-": false,
	} {
		if Lingers(owner) != lingers {
			t.Errorf("Lingers(%q) is not %v", owner, lingers)
		}
	}
	if !IsOurs(OwnerID(id, 1, Marks{})) || IsOurs("0c2d3f1e-aaaa-4bbb-8ccc-0123456789ab:1") {
		t.Error("IsOurs does not tell ours from Redisson's")
	}
}

// AC-13: owner ids come from the system's random source and nothing else, so that
// processes that were cloned, with their clocks and seeds, have different ones.
func TestOwnerID_IsRandom(t *testing.T) {
	var ids []string
	for _, seed := range []uint64{1, 1, 2} {
		t.Run("", func(t *testing.T) {
			cryptotest.SetGlobalRandom(t, seed)
			ids = append(ids, NewOwnerPrefix())
		})
	}
	if ids[0] != ids[1] || ids[0] == ids[2] {
		t.Errorf("ids %q: want the first two alike and the third different", ids)
	}
}

func TestSaysReleased(t *testing.T) {
	for payload, want := range map[string]bool{"0": true, "1": true, "2": true, "1048576": true, "": false, "0\n": false, "-1": false, "+1": false, "1.5": false, "a": false} {
		if got := SaysReleased(payload); got != want {
			t.Errorf("SaysReleased(%q) = %v", payload, got)
		}
	}
}

// A later version may say more behind the fields known here. What has fewer, or others, is no notice.
func TestParseNotice_IgnoresWhatFollows(t *testing.T) {
	const grant = "g 7 2000 1763760000 123456 1 0 128"
	want, ok := ParseNotice(grant)
	if !ok {
		t.Fatalf("%q is not read", grant)
	}
	for _, more := range []string{" 1", " 1 2 3", " text", " 99999999999999999999999", " a=b c", " "} {
		if n, ok := ParseNotice(grant + more); !ok || n != want {
			t.Errorf("%q is %+v, %v", grant+more, n, ok)
		}
		if n, ok := ParseNotice("o 7" + more); !ok || n.Number != 7 || n.Granted {
			t.Errorf("%q is %+v, %v", "o 7"+more, n, ok)
		}
	}
	for payload, want := range map[string]time.Duration{"o 7 250": 250 * time.Millisecond, "o 7 250 1": 250 * time.Millisecond, "o 7 0 1": 0,
		"o 7 99999999999999": 24 * time.Hour, "o 7 99999999999999999999999": 0, "o 7 -1": 0} {
		if n, ok := ParseNotice(payload); !ok || n != (Notice{Number: 7, Left: want}) {
			t.Errorf("%q is %+v, %v", payload, n, ok)
		}
	}
	for _, bad := range []string{"", "g", "o", "o ", "o x", "g 7 2000 1763760000 123456 1 0", "g 7 2000 1763760000 123456 1 0 x", "x 7", grant + "1x"} {
		if n, ok := ParseNotice(bad); ok {
			t.Errorf("%q is %+v", bad, n)
		}
	}
}

// A client that may publish can send anything. What is read as a notice is within bounds, and what
// our scripts send is read.
func FuzzNotice(f *testing.F) {
	f.Add("g 7 2000 1763760000 123456 1 0 128")
	f.Add("o 7")
	f.Fuzz(func(t *testing.T, payload string) {
		n, ok := ParseNotice(payload)
		if ok && (n.Claim < 0 || n.Claim > 24*time.Hour || n.Left < 0 || n.Left > 24*time.Hour || n.Clock < 0 || n.Turn < 0) {
			t.Errorf("%q is %+v", payload, n)
		}
		if again := fmt.Sprintf("o %d", n.Number); ok {
			if m, ok := ParseNotice(again); !ok || m.Number != n.Number || m.Granted {
				t.Errorf("%q is %+v, %v", again, m, ok)
			}
		}
	})
}

func ExampleCheckName() {
	fmt.Println(CheckName("order:42"))
	fmt.Println(CheckName("order:{}"))
	// Output:
	// <nil>
	// the name has unbalanced or empty braces; use at most one non-empty {tag}
}

// A ticket is read as it was written, and nothing else is one. T4: the token is in it.
func TestTicket_Text(t *testing.T) {
	for _, tc := range []Ticket{
		{Kind: 'm', Key: "a", Name: "a", For: 10 * time.Millisecond},
		{Kind: 'r', Key: "app:" + strings.Repeat("x", maxNameLen-4), Name: strings.Repeat("x", maxNameLen), Token: 1<<53 - 1, For: 100 * 365 * 24 * time.Hour},
		{Kind: 's', Key: "a", Name: "a", For: time.Second, Permits: 1000},
	} {
		tc.Giver = NewOwnerPrefix()
		made, another := NewTicket(tc), NewTicket(tc)
		text := made.String()
		read, err := ParseTicket(text)
		if err != nil || *read != *made || read.Number() != made.Number() {
			t.Errorf("%q is read as %+v, %v, want %+v", text, read, err, made)
		}
		if most := 106 + (len(tc.Key)+len(tc.Name))*4/3; len(text) > most {
			t.Errorf("%d bytes, %d at most", len(text), most)
		}
		if made.Number() == another.Number() || text == another.String() {
			t.Error("two tickets are the same")
		}
		ids := []string{OwnerID(tc.Giver, made.Number(), Marks{Writes: tc.Kind == 'w'})}
		if tc.Permits > 0 {
			permits := hex.EncodeToString([]byte(Permits(tc.Giver, made.Number(), tc.Permits)))
			ids = []string{permits[:2*PermitBytes], permits[len(permits)-2*PermitBytes:]}
		}
		for _, id := range ids {
			if !IsDetached(id) || ProcessKey(id) != ProcessKey(tc.Giver+"1") {
				t.Errorf("%s is no ticket's", id)
			}
		}
		for i := range text {
			for _, wrong := range []string{text[:i], text[:i] + "A" + text[i+1:], text[:i] + "B" + text[i+1:], text[:i] + "A" + text[i:]} {
				if _, err := ParseTicket(wrong); err == nil && wrong != text {
					t.Fatalf("%q is taken for a ticket", wrong)
				}
			}
		}
	}
	for _, id := range []string{"", "22222222bbbb4bbb8bbb00ffffffffff", "hf-", "hf-x:1", "hf-x:01", "hf-x:4611686018427387903", "x:4611686018427387904", "hf-x:99999999999999999999"} {
		if IsDetached(id) {
			t.Errorf("%q is taken for a ticket's", id)
		}
	}
}

func TestWaits_AreReadAsTheyWereWritten(t *testing.T) {
	t.Parallel()
	since := time.UnixMilli(1764293750123)
	var all []Waits
	for i, name := range []string{"a", "order:0007", "a b", "line\n2 5 \"a\"", "\xff\x00", `"quoted"`, strings.Repeat("é", 500)} {
		all = append(all, Waits{name, i + 1, since.Add(time.Duration(i) * time.Hour)})
	}
	text := FormatWaits(all)
	for _, w := range all {
		if got := FindWaits(text, w.Name); got.Callers != w.Callers || !got.Since.Equal(w.Since) {
			t.Errorf("%q: %+v, want %+v", w.Name, got, w)
		}
	}
	if got := FindWaits(text, "order"); got != (Waits{}) {
		t.Errorf("of a lock that is not there: %+v", got)
	}
}

// What is beyond the bound is left out as a whole.
func TestWaits_AreBounded(t *testing.T) {
	t.Parallel()
	var all []Waits
	for i := range 10_000 {
		all = append(all, Waits{fmt.Sprintf("lock:%05d", i), 1, time.UnixMilli(0)})
	}
	text := FormatWaits(all)
	lines := slices.Collect(strings.Lines(text))
	if len(text) > maxWaits || len(text) < maxWaits-100 || FindWaits(text, all[len(lines)-1].Name).Callers != 1 {
		t.Errorf("%d bytes, %d lines, the last %q", len(text), len(lines), lines[len(lines)-1])
	}
}

// Any client can have written the text.
func TestFindWaits_OfAnyText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "\n", "5", `5 "a"`, `5  "a"`, `-1 0 "a"`, `0 0 "a"`, `x 0 "a"`, `1 x "a"`, `1 0 a`, `99999999999999999999 0 "a"`} {
		if got := FindWaits(text, "a"); got != (Waits{}) {
			t.Errorf("%q: %+v", text, got)
		}
	}
	if got := FindWaits("x 1 \"a\"\n2 1 \"a\"\n", "a"); got.Callers != 2 {
		t.Errorf("behind a line that says nothing: %+v", got)
	}
}

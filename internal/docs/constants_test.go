package docs

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast"
	"github.com/holdfast-go/holdfast/internal/validity"
	"github.com/holdfast-go/holdfast/internal/wire"
)

// constant is the value of a constant, of this or an internal package, as its source has it: a number, or a duration.
func constant(t *testing.T, name string) int64 {
	t.Helper()
	either := "[" + strings.ToLower(name[:1]) + strings.ToUpper(name[:1]) + "]" + name[1:] // it may be exported
	definition := regexp.MustCompile(`(?m)^(?:const |\t)` + either + ` += ([0-9]+)?(?:(?: \* )?(time\.\w+))?(?: //.*)?$`)
	var found []string
	value := int64(1)
	for _, f := range glob(t, "*.go", "internal/*/*.go") {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		for _, m := range definition.FindAllStringSubmatch(read(t, f), -1) {
			found = append(found, f+": "+m[0])
			if n, err := strconv.ParseInt(m[1], 10, 64); err == nil {
				value = n
			}
			if unit, ok := units[m[2]]; ok {
				value *= int64(unit)
			}
		}
	}
	if len(found) != 1 {
		t.Fatalf("the constant %s is defined here: %q", name, found)
	}
	return value
}

var units = map[string]time.Duration{"time.Millisecond": time.Millisecond, "time.Second": time.Second, "time.Minute": time.Minute}

// The times in pictures, tables and doc comments are those of the code.
func TestDocs_ConstantsAreThoseOfTheCode(t *testing.T) {
	say := func(d time.Duration) string {
		switch {
		case d%time.Minute == 0:
			return fmt.Sprintf("%d minute", d/time.Minute)
		case d%time.Second == 0:
			return fmt.Sprintf("%d s", d/time.Second)
		}
		return fmt.Sprintf("%d ms", d/time.Millisecond)
	}
	word := map[int64]string{2: "half", 3: "third", 50: "fiftieth"}
	var (
		sent     = time.Now()
		lease    = say(holdfast.DefaultLease)
		claim    = time.Duration(constant(t, "MaxClaim"))
		first    = say(time.Duration(constant(t, "soon")))
		margin   = say(validity.Margin(time.Second)) // the least
		part     = int64(time.Hour / validity.Margin(time.Hour))
		atMost   = int64(20 * time.Millisecond / validity.Margin(20*time.Millisecond))
		renewal  = int64(time.Hour / validity.RenewAt(sent, time.Hour).Sub(sent))
		inARow   = constant(t, "turnsInARow")
		burial   = say(time.Duration(constant(t, "burial")))
		reserved = int64(wire.TokensPerGrant)
	)
	for file, texts := range map[string][]string{
		"docs/GUIDE.md": {
			fmt.Sprintf("│───── TTL/%d ─────│───── TTL/%d ─────│", renewal, renewal),
			fmt.Sprintf("│───── TTL/%d ─────│─ repeated until the deadline ──│─ margin ──────│", renewal),
			fmt.Sprintf("After a %s of the TTL the lease is renewed", word[renewal]),
			fmt.Sprintf("The margin (%s or a %s of the TTL, the larger)", margin, word[part]),
			"PTTL " + lease,
			fmt.Sprintf("next owner: B, TTL %s ", say(claim)),
			fmt.Sprintf("renewal, %s later ────│ TTL %s", first, lease),
			fmt.Sprintf("wait for the %s of its grant", say(claim)),
			fmt.Sprintf("for at most `WithHandoffSlice`, `%v` by default", holdfast.DefaultHandoffSlice),
			fmt.Sprintf("when the TTL ends: %s by default", lease),
		},
		"docs/OPTIONS.md": {
			fmt.Sprintf("%s or a %s of the TTL, the larger, at most %s of the TTL |", margin, word[part], word[atMost]),
			fmt.Sprintf("| renewal | every %s of the TTL |", word[renewal]),
			fmt.Sprintf("just granted to another process | %s, or the releaser's lease if that is shorter |", say(claim)),
			fmt.Sprintf("| first renewal after such a grant | %s later |", first),
			fmt.Sprintf("that is not in the queue gets its turn | %d |", inARow),
			fmt.Sprintf("| tokens reserved by a remote hand-off | %d |", reserved),
			fmt.Sprintf("| tombstone of a request whose reply was lost | %s |", burial),
		},
		"docs/SETUP.md": {
			fmt.Sprintf("`sent + TTL - max(%s, TTL/%d)`", margin, part),
			fmt.Sprintf("A grant ends after %s, so the waiter polls at least every", say(claim)),
		},
		"doc.go": {
			fmt.Sprintf("margin = max(%s, TTL/%d), at most TTL/%d", margin, part, atMost),
			fmt.Sprintf("Holds are renewed every TTL/%d", renewal),
			fmt.Sprintf("The first renewal, %s later, raises", first),
			fmt.Sprintf("after at most %d grants in a row", inARow),
		},
	} {
		page := strings.ReplaceAll(read(t, file), "\n// ", " ")
		for _, text := range texts {
			if !strings.Contains(page, text) {
				t.Errorf("%s does not say: %s", file, text)
			}
		}
	}
	if right := constant(t, "defaultRight"); right != int64(holdfast.DefaultLease) {
		t.Errorf("the scripts give a reader's right without TTL %v, not the default lease", time.Duration(right))
	}
	if !strings.Contains(read(t, "doc.go"), "a TTL of two seconds") || claim != 2*time.Second {
		t.Errorf("doc.go does not say that a grant lasts for %v", claim)
	}
}

package wire

import (
	"strings"
	"testing"
	"time"
)

// A ticket is read as it was written, and nothing else is one. T4: the token is in it.
func TestTicket_Text(t *testing.T) {
	for _, tc := range []Ticket{
		{Kind: 'm', Key: "a", Name: "a", For: 10 * time.Millisecond},
		{Kind: 'r', Key: "app:" + strings.Repeat("x", maxNameLen-4), Name: strings.Repeat("x", maxNameLen), Token: 1<<53 - 1, For: 100 * 365 * 24 * time.Hour},
	} {
		tc.Giver = NewOwnerPrefix()
		made, another := NewTicket(tc), NewTicket(tc)
		text := made.String()
		read, err := ParseTicket(text)
		if err != nil || *read != *made || read.Number() != made.Number() {
			t.Errorf("%q is read as %+v, %v, want %+v", text, read, err, made)
		}
		if most := 104 + (len(tc.Key)+len(tc.Name))*4/3; len(text) > most {
			t.Errorf("%d bytes, %d at most", len(text), most)
		}
		if made.Number() == another.Number() || text == another.String() {
			t.Error("two tickets are the same")
		}
		if id := OwnerID(tc.Giver, made.Number(), Marks{Writes: tc.Kind == 'w'}); !IsDetached(id) || ProcessKey(id) != ProcessKey(tc.Giver+"1") {
			t.Errorf("%s is no ticket's", id)
		}
		for i := range text {
			for _, wrong := range []string{text[:i], text[:i] + "A" + text[i+1:], text[:i] + "B" + text[i+1:], text[:i] + "A" + text[i:]} {
				if _, err := ParseTicket(wrong); err == nil && wrong != text {
					t.Fatalf("%q is taken for a ticket", wrong)
				}
			}
		}
	}
	for _, id := range []string{"", "hf-", "hf-x:1", "hf-x:01", "hf-x:4611686018427387903", "x:4611686018427387904", "hf-x:99999999999999999999"} {
		if IsDetached(id) {
			t.Errorf("%q is taken for a ticket's", id)
		}
	}
}

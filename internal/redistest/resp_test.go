package redistest

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

func TestFrameReader_Replies(t *testing.T) {
	for _, c := range []struct {
		in, elems string
		kind      byte
	}{
		{"+OK\r\n", "OK", '+'},
		{"-ERR no\r\n", "ERR no", '-'},
		{":-7\r\n", "-7", ':'},
		{"$5\r\na\r\nbc\r\n", "a\r\nbc", '$'},
		{"$0\r\n\r\n", "", '$'},
		{"$-1\r\n", "", '$'},
		{"*-1\r\n", "", '*'},
		{"*0\r\n", "", '*'},
		{"*3\r\n:1\r\n*2\r\n+x\r\n+y\r\n$1\r\nz\r\n", "1||z", '*'},
		{"_\r\n", "", '_'},
		{"#t\r\n", "t", '#'},
		{",1.5\r\n", "1.5", ','},
		{"!3\r\nERR\r\n", "ERR", '!'},
		{"=5\r\ntxt:a\r\n", "txt:a", '='},
		{"%2\r\n+a\r\n:1\r\n+b\r\n*1\r\n:2\r\n", "a|1|b|", '%'},
		{"~1\r\n+a\r\n", "a", '~'},
		{">2\r\n+message\r\n+ch\r\n", "message|ch", '>'},
	} {
		// Twice, to see that each frame ends where it should, and byte by
		// byte, as a network may deliver it.
		r := newFrameReader(iotest.OneByteReader(strings.NewReader(c.in+c.in)), -1)
		for range 2 {
			f, err := r.reply()
			if err != nil || f.kind != c.kind || string(f.raw) != c.in || strings.Join(f.elems, "|") != c.elems {
				t.Errorf("%q: %c %q %q, %v", c.in, f.kind, f.elems, f.raw, err)
			}
		}
		if _, err := r.reply(); err != io.EOF {
			t.Errorf("%q: %v at the end, want EOF", c.in, err)
		}
		for cut := 1; cut < len(c.in); cut++ {
			_, err := newFrameReader(strings.NewReader(c.in[:cut]), -1).reply()
			if err != io.ErrUnexpectedEOF {
				t.Errorf("%q: %v, want an unexpected EOF", c.in[:cut], err)
			}
		}
	}
}

func TestFrameReader_Limit(t *testing.T) {
	f, err := newFrameReader(strings.NewReader("*3\r\n:1\r\n:2\r\n:3\r\n"), 2).reply()
	if err != nil || strings.Join(f.elems, " ") != "1 2" || len(f.raw) != 16 {
		t.Errorf("%q %q, %v", f.elems, f.raw, err)
	}
}

func TestFrameReader_Requests(t *testing.T) {
	in := string(encodeCommand("SET", "k", "")) + "\r\n*0\r\nPING  x\r\nGET k\n"
	r := newFrameReader(strings.NewReader(in), -1)
	for _, want := range []string{"SET|k|", "PING|x", "GET|k"} {
		f, err := r.request()
		if got := strings.Join(f.elems, "|"); err != nil || got != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
	if _, err := r.request(); err != io.EOF {
		t.Errorf("%v at the end, want EOF", err)
	}
}

func TestFrameReader_RejectsOtherProtocols(t *testing.T) {
	for _, in := range []string{"HTTP/1.1 400\r\n", "\r\n", "$x\r\n", "*-2\r\n", "$99999999999\r\n", "?1\r\n"} {
		if _, err := newFrameReader(strings.NewReader(in), -1).reply(); !errors.Is(err, errProtocol) {
			t.Errorf("%q: %v, want a protocol error", in, err)
		}
	}
}

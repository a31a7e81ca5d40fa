package vredis_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"
)

// patience bounds the wait for one reply or message: a script may run forever.
const patience = time.Minute

// wire is a connection on which replies are read as they are, in one form for RESP2 and RESP3.
type wire struct {
	tb   testing.TB
	conn net.Conn
	r    *bufio.Reader
}

func newWire(tb testing.TB, conn net.Conn) *wire {
	tb.Cleanup(func() { _ = conn.Close() })
	return &wire{tb, conn, bufio.NewReaderSize(conn, 1<<16)}
}

func appendCommand(b []byte, args []string) []byte {
	b = fmt.Appendf(b, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b
}

func (w *wire) send(all ...[]string) {
	var b []byte
	for _, args := range all {
		b = appendCommand(b, args)
	}
	_ = w.conn.SetWriteDeadline(time.Now().Add(patience))
	if _, err := w.conn.Write(b); err != nil {
		w.tb.Fatal(err)
	}
}

func (w *wire) do(args ...string) string {
	w.send(args)
	return w.read()
}

// read returns one reply as text, or a message.
func (w *wire) read() string {
	_ = w.conn.SetReadDeadline(time.Now().Add(patience))
	text, err := w.next()
	if err != nil {
		w.tb.Fatal(err)
	}
	return text
}

func (w *wire) next() (string, error) {
	line, err := w.r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	n, _ := strconv.Atoi(line[1:])
	switch kind := line[0]; kind {
	case '$', '=':
		if n < 0 {
			return "(null $)", nil
		}
		body := make([]byte, n+2)
		if _, err := io.ReadFull(w.r, body); err != nil {
			return "", err
		}
		return strconv.Quote(string(body[:n])), nil
	case '*', '%', '~', '>':
		if n < 0 {
			return "(null *)", nil
		}
		if kind == '%' {
			n *= 2
		}
		all := make([]string, n)
		for i := range all {
			if all[i], err = w.next(); err != nil {
				return "", err
			}
		}
		return string(kind) + "[" + strings.Join(all, " ") + "]", nil
	}
	return line, nil
}

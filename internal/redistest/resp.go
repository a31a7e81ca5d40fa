package redistest

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// frame is one RESP value.
type frame struct {
	raw  []byte // the bytes as they came
	kind byte   // first byte of the value: '+', '$', '*', '>', ...

	// elems holds the text of a scalar, or the first elements of an
	// aggregate, up to the reader's limit; a nested aggregate is "".
	elems []string
}

// text returns the text of a scalar or of an aggregate's first element.
func (f frame) text() string {
	if len(f.elems) == 0 {
		return ""
	}
	return f.elems[0]
}

// errProtocol: the bytes are not RESP. It means a bug here or in the peer, as a
// connection that ends in the middle of a frame gives io.ErrUnexpectedEOF.
var errProtocol = errors.New("not RESP")

// maxFrame is Redis's own limit of a bulk string.
const maxFrame = 512 << 20

// frameReader cuts a stream of RESP2 or RESP3 into frames. It is not safe for
// concurrent use.
type frameReader struct {
	br    *bufio.Reader
	limit int // elements of an aggregate to keep; negative keeps all
	cur   frame
}

func newFrameReader(r io.Reader, limit int) *frameReader {
	return &frameReader{br: bufio.NewReaderSize(r, 16<<10), limit: limit}
}

// reply reads the next value. It returns io.EOF only between values.
func (r *frameReader) reply() (frame, error) {
	r.cur = frame{}
	err := r.value(0)
	return r.cur, r.cutShort(err)
}

// request reads the next command, an array of strings or an inline line.
func (r *frameReader) request() (frame, error) {
	for {
		first, err := r.br.Peek(1)
		if err != nil {
			return frame{}, err
		}
		if first[0] == '*' {
			f, err := r.reply()
			if err != nil || len(f.elems) > 0 {
				return f, err
			}
			continue // Redis ignores an empty command, and so do we
		}
		r.cur = frame{}
		line, err := r.line()
		if err != nil {
			return frame{}, r.cutShort(err)
		}
		if f := (frame{raw: r.cur.raw, kind: '*', elems: strings.Fields(line)}); len(f.elems) > 0 {
			return f, nil
		}
	}
}

// cutShort turns an EOF inside a frame into io.ErrUnexpectedEOF.
func (r *frameReader) cutShort(err error) error {
	if err == io.EOF && len(r.cur.raw) > 0 {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (r *frameReader) value(depth int) error {
	line, err := r.line()
	if err != nil {
		return err
	}
	if line == "" {
		return fmt.Errorf("%w: empty line", errProtocol)
	}
	kind, text := line[0], line[1:]
	if depth == 0 {
		r.cur.kind = kind
	}
	switch kind {
	case '+', '-', ':', '_', '#', ',':
		r.keep(depth, text)
		return nil
	}

	n, err := strconv.Atoi(text)
	if err != nil || n < -1 || n > maxFrame {
		return fmt.Errorf("%w: length in %q", errProtocol, line)
	}
	switch kind {
	case '$', '!', '=':
		if n < 0 {
			r.keep(depth, "")
			return nil
		}
		body, err := r.body(n)
		r.keep(depth, body)
		return err
	case '*', '~', '>':
	case '%':
		n *= 2
	default:
		return fmt.Errorf("%w: type in %q", errProtocol, line)
	}
	if depth > 0 {
		r.keep(depth, "")
	}
	for range n {
		if err := r.value(depth + 1); err != nil {
			return err
		}
	}
	return nil
}

// keep notes a scalar of the frame itself or of its first level.
func (r *frameReader) keep(depth int, text string) {
	if depth <= 1 && (r.limit < 0 || len(r.cur.elems) < r.limit) {
		r.cur.elems = append(r.cur.elems, text)
	}
}

// line reads up to and including CRLF and returns what is before it.
func (r *frameReader) line() (string, error) {
	start := len(r.cur.raw)
	for {
		part, err := r.br.ReadSlice('\n')
		r.cur.raw = append(r.cur.raw, part...)
		if err == bufio.ErrBufferFull {
			continue
		}
		return strings.TrimRight(string(r.cur.raw[start:]), "\r\n"), err
	}
}

// body reads n bytes and the CRLF behind them.
func (r *frameReader) body(n int) (string, error) {
	start := len(r.cur.raw)
	r.cur.raw = append(r.cur.raw, make([]byte, n+2)...)
	_, err := io.ReadFull(r.br, r.cur.raw[start:])
	return string(r.cur.raw[start : start+n]), err
}

// encodeCommand returns args as a RESP array of bulk strings.
func encodeCommand(args ...string) []byte {
	b := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, a := range args {
		b = fmt.Appendf(b, "$%d\r\n%s\r\n", len(a), a)
	}
	return b
}

// rawConn is a connection without pool, retries or handshake, for what must
// not be disturbed by a client library.
type rawConn struct {
	net.Conn
	replies *frameReader
}

// dialRaw connects and, if there is a password, authenticates.
func dialRaw(addr, password string, timeout time.Duration) (*rawConn, error) {
	conn, err := net.DialTimeout("tcp", addr, timeout)
	if err != nil {
		return nil, err
	}
	c := &rawConn{Conn: conn, replies: newFrameReader(conn, -1)}
	if password == "" {
		return c, nil
	}
	_ = conn.SetDeadline(time.Now().Add(timeout))
	if _, err := c.do("AUTH", password); err != nil {
		_ = conn.Close()
		return nil, err
	}
	_ = conn.SetDeadline(time.Time{})
	return c, nil
}

// do sends one command and reads one reply. An error reply is an error.
func (c *rawConn) do(args ...string) (frame, error) {
	if _, err := c.Write(encodeCommand(args...)); err != nil {
		return frame{}, err
	}
	f, err := c.replies.reply()
	if err == nil && (f.kind == '-' || f.kind == '!') {
		err = errors.New(f.text())
	}
	return f, err
}

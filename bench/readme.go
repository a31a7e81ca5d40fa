package bench

import (
	"bytes"
	"fmt"
	"path/filepath"
)

// Where the figures of the README begin and end.
var (
	figuresBegin = []byte("<!-- figures: written by bench/cmd/report -->\n")
	figuresEnd   = []byte("<!-- /figures -->")
)

// RefreshREADME puts the report's summary between the marks of a README; file is where
// the whole report was written, seen from there.
func (r *Report) RefreshREADME(readme []byte, file string) ([]byte, error) {
	head, rest, ok := bytes.Cut(readme, figuresBegin)
	if !ok {
		return nil, fmt.Errorf("the README has no line %q", bytes.TrimSpace(figuresBegin))
	}
	_, tail, ok := bytes.Cut(rest, figuresEnd)
	if !ok {
		return nil, fmt.Errorf("the README has no line %q", figuresEnd)
	}
	var b bytes.Buffer
	b.Write(head)
	b.Write(figuresBegin)
	p := &printer{w: &b}
	p.f("\n## Figures\n\nFrom [%s](%s), which has the machine, the method and all the rest; `make bench` measures again.\n", filepath.Base(file), filepath.ToSlash(file))
	p.f("%d cores, the server on one and the clients on the other. `onename` is a lock handed over without any work under it: do not expect its ratio of a real section.\n\n", r.Machine.Cores)
	p.table(r)
	p.f("\n")
	if p.err != nil {
		return nil, p.err
	}
	b.Write(figuresEnd)
	b.Write(tail)
	return b.Bytes(), nil
}

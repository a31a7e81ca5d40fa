package redistest

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// AOF returns the commands of the server's append-only file: every write it has
// executed, in order, over all restarts. The server needs WithAOF. What a running
// server is writing at this moment may be missing.
//
// Relative times are absolute there (PEXPIREAT), a script stands as what it wrote, and
// several writes of one script are between MULTI and EXEC. A key that expired is a DEL.
func (s *Server) AOF() [][]string {
	s.tb.Helper()
	files, err := filepath.Glob(filepath.Join(s.dir, "appendonlydir", "*.incr.aof"))
	if err == nil && len(files) == 0 { // servers before 7 write a single file
		files = []string{filepath.Join(s.dir, "appendonly.aof")}
	}
	slices.Sort(files)
	var cmds [][]string
	for _, file := range files {
		more, readErr := readAOF(file)
		err = errors.Join(err, readErr)
		cmds = append(cmds, more...)
	}
	if err != nil {
		s.tb.Fatalf("redistest: read the append-only file: %v", err)
	}
	return cmds
}

// readAOF stops at a command that was cut off, as Redis does when it loads the file.
func readAOF(file string) (cmds [][]string, err error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	frames := newFrameReader(f, -1)
	for {
		cmd, err := frames.request()
		if err == io.EOF || errors.Is(err, io.ErrUnexpectedEOF) {
			return cmds, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		cmds = append(cmds, cmd.elems)
	}
}

package vredis

import (
	"context"
	"slices"

	lua "github.com/yuin/gopher-lua"
)

// Trace has at be called with the line of each instruction of a script that s runs.
func (s *Server) Trace(at func(line int)) {
	s.change(func() { s.lua.state.SetContext(&tracer{context.Background(), s.lua.state, at}) })
}

// tracer is a context that gopher-lua asks before each instruction whether it is done. It never is.
type tracer struct {
	context.Context
	state *lua.LState
	at    func(line int)
}

func (t *tracer) Done() <-chan struct{} {
	if frame, ok := t.state.GetStack(0); ok {
		if _, err := t.state.GetInfo("l", frame, lua.LNil); err == nil && frame.CurrentLine > 0 {
			t.at(frame.CurrentLine)
		}
	}
	return nil
}

// LinesOf returns the lines of a script that have instructions, in order.
func LinesOf(text string) ([]int, error) {
	proto, err := compile(text, text)
	if err != nil {
		return nil, err
	}
	var all []int
	for protos := []*lua.FunctionProto{proto}; len(protos) > 0; protos = protos[1:] {
		all = append(all, protos[0].DbgSourcePositions...)
		protos = append(protos, protos[0].FunctionPrototypes...)
	}
	slices.Sort(all)
	return slices.Compact(all), nil
}

// KeysOf returns the keys that a command touches.
func KeysOf(args []string) []string {
	d, wrong := lookup(args)
	if wrong != nil {
		return nil
	}
	return d.keysOf(args)
}

package stage

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
)

const module = "github.com/holdfast-go/holdfast"

// build makes an executable of a program in dir. The stage has to run inside the module, where go finds the program.
func build(ctx context.Context, program, dir string) (exe string, err error) {
	exe = filepath.Join(dir, filepath.Base(program)+".exe") // Windows wants the ending, and others do not mind
	args := []string{"build", "-ldflags=-w", "-o", exe}     // without what debuggers need, in two thirds of the time
	if raceDetector {
		args = append(args, "-race")
	}
	if out, err := exec.CommandContext(ctx, "go", append(args, module+"/"+program)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", program, err, out)
	}
	return exe, nil
}

//go:build race

package stage

const raceDetector = true // the programs have it if the stage has

package locktest

// Reasons why a scenario needs a real server.
const (
	processes = "other processes, which are killed or stopped"
	spins     = "a loop that waits for no timer: a bubble's clock would stand still"
	disk      = "files on a disk"
	timers    = "go-redis keeps the timers of exhausted pools for all clients: a timer of one bubble is none in another"
)

// realOnly says why a scenario does not run in the virtual world. All others run in both.
var realOnly = map[string]string{
	"BusyProcessorLosesNothing":                      processes,
	"DeadWriterIsDropped":                            processes,
	"ExhaustedPool":                                  timers,
	"FullDiskIsAnErrorAndTheTTLBounds":               disk,
	"GrantToADeadWaiterIsBounded":                    processes,
	"KilledGrantee":                                  processes,
	"KilledHolderIsOutlivedByItsTTL":                 processes,
	"KilledInTheQueue":                               processes,
	"LoadingServer":                                  disk,
	"ManyReadersOrOneWriterInProcesses":              processes,
	"OfADeadReaderEnds":                              processes,
	"OfAPausedReaderEnds":                            processes,
	"OfTheLastDeadReaderEnds":                        processes,
	"OrderOfArrivalOverProcesses":                    processes,
	"PausedHolderWakesUpToALoss":                     processes,
	"ReaderAgainstLoopingWriters":                    processes,
	"ReadersComeInAndWritersDoNot":                   processes,
	"ReentryBehindMaxHoldIsRefused":                  spins,
	"ResumedProcessDoesNotRefuseForALeaseThatIsOver": processes,
	"ResumedProcessIsFirstAgain":                     processes,
	"StoppedGrantee":                                 processes,
	"StoppedInTheQueue":                              processes,
	"UnlockBehindMaxHoldIsTold":                      spins,
	"WaitingIsIdle":                                  processes,
	"WriterAgainstLoopingReaders":                    processes,
}

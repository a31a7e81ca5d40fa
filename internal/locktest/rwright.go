package locktest

var rwRightScenarios = map[string]func(*Env){}
var rwQueueScenarios = map[string]func(*Env){}
var rwRedissonScenarios = map[string]func(*Env){}

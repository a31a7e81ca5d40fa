package locktest

var rwRedissonScenarios = map[string]func(*Env){}

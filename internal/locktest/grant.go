package locktest

var grantScenarios = map[string]func(*Env){}

-- an unselected call's error ends a selected one and the root: one capture, two links
local function below() error("boom") end
local function between() below() end
varve.call(varve.id():capture {error = true}, between)

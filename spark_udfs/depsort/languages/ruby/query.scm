(class name: (_) @type)
(module name: (_) @type)
(class body: (_) @body)
(module body: (_) @body)
(class superclass: (superclass [(constant) (scope_resolution)] @base))
(argument_list [(constant) (scope_resolution)] @given)
(assignment left: [(constant) (scope_resolution)] @constant)
(operator_assignment left: [(constant) (scope_resolution)] @constant)
(left_assignment_list (constant) @constant)
(method name: (_) @method)
(singleton_method name: (_) @method)
(constant) @name
(scope_resolution) @chain
(call receiver: (_) method: (identifier) @member)
(call !receiver method: (identifier) @function arguments: (argument_list . (string) @argument))
(call !receiver method: (identifier) @function
  arguments: (argument_list . (simple_symbol) . (string) @argument))
(method) @function_body
(singleton_method) @function_body
(lambda) @function_body

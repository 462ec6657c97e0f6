(namespace_definition name: (namespace_name) @namespace)
(namespace_use_clause) @use
(class_declaration name: (name) @type)
(interface_declaration name: (name) @type)
(trait_declaration name: (name) @type)
(enum_declaration name: (name) @type)
(function_definition name: (name) @type)
(method_declaration name: (name) @method)
(const_element . (name) @constant)
(member_call_expression name: (name) @member)
(nullsafe_member_call_expression name: (name) @member)
(scoped_call_expression name: (name) @member)
(named_type (name) @name)
(base_clause (name) @name)
(class_interface_clause (name) @name)
(use_declaration (name) @name)
(object_creation_expression (name) @name)
(scoped_call_expression scope: (name) @name)
(class_constant_access_expression . (name) @name)
(scoped_property_access_expression scope: (name) @name)
(binary_expression right: (name) @name)
(function_call_expression function: (name) @name)
(attribute (name) @name)
(qualified_name) @qualified
(relative_name) @qualified
(require_expression) @include
(require_once_expression) @include
(include_expression) @include
(include_once_expression) @include

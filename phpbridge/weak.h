/* The front never touches PHP, so this program must run without libphp: only
 * the zygote has it, loaded by LD_PRELOAD. Weak references make the linker list
 * the names without requiring the library. A name that is missing here makes
 * libphp a dependency of the whole program, which a test notices. Weak addresses
 * are zero in static initialisers: take them at run time. */
#ifndef EPHPM_WEAK_H
#define EPHPM_WEAK_H

#pragma weak __zend_malloc
#pragma weak _efree
#pragma weak _efree_huge
#pragma weak _efree_large
#pragma weak _emalloc
#pragma weak _php_stream_get_line
#pragma weak _php_stream_open_wrapper_ex
#pragma weak _safe_emalloc
#pragma weak _zend_new_array_0
#pragma weak add_assoc_stringl_ex
#pragma weak add_next_index_stringl
#pragma weak ap_php_snprintf
#pragma weak compiler_globals
#pragma weak core_globals
#pragma weak executor_globals
#pragma weak get_active_function_name
#pragma weak get_zend_version
#pragma weak json_globals
#pragma weak module_registry
#pragma weak open_file_for_scanning
#pragma weak php_check_open_basedir
#pragma weak php_child_init
#pragma weak php_execute_script
#pragma weak php_get_highlight_struct
#pragma weak php_get_temporary_directory
#pragma weak php_getopt
#pragma weak php_handle_aborted_connection
#pragma weak php_handle_auth_data
#pragma weak php_header
#pragma weak php_import_environment_variables
#pragma weak php_info_print_table_end
#pragma weak php_info_print_table_row
#pragma weak php_info_print_table_start
#pragma weak php_ini_opened_path
#pragma weak php_ini_scanned_files
#pragma weak php_ini_scanned_path
#pragma weak php_json_encode
#pragma weak php_lint_script
#pragma weak php_module_shutdown
#pragma weak php_module_startup
#pragma weak php_output_end_all
#pragma weak php_print_info
#pragma weak php_printf
#pragma weak php_register_variable_safe
#pragma weak php_request_shutdown
#pragma weak php_request_startup
#pragma weak sapi_globals
#pragma weak sapi_module
#pragma weak sapi_send_headers
#pragma weak sapi_shutdown
#pragma weak sapi_startup
#pragma weak smart_str_ferealloc
#pragma weak smart_str_frealloc
#pragma weak smart_str_realloc
#pragma weak zend_alter_ini_entry_chars
#pragma weak zend_argument_value_error
#pragma weak zend_ce_error
#pragma weak zend_ce_exception
#pragma weak zend_ce_value_error
#pragma weak zend_compile_file
#pragma weak zend_destroy_file_handle
#pragma weak zend_empty_string
#pragma weak zend_error
#pragma weak zend_eval_string_ex
#pragma weak zend_extensions
#pragma weak zend_get_constant_str
#pragma weak zend_hash_str_del
#pragma weak zend_hash_str_find
#pragma weak zend_hash_str_update
#pragma weak zend_highlight
#pragma weak zend_ini_long
#pragma weak zend_is_auto_global_str
#pragma weak zend_llist_get_first_ex
#pragma weak zend_llist_get_next_ex
#pragma weak zend_message_dispatcher
#pragma weak zend_parse_arg_bool_slow
#pragma weak zend_parse_arg_long_slow
#pragma weak zend_parse_arg_str_slow
#pragma weak zend_register_bool_constant
#pragma weak zend_register_constant
#pragma weak zend_register_functions
#pragma weak zend_register_long_constant
#pragma weak zend_register_stringl_constant
#pragma weak zend_resolve_path
#pragma weak zend_signal_globals
#pragma weak zend_signal_startup
#pragma weak zend_stream_init_filename
#pragma weak zend_stream_init_fp
#pragma weak zend_strip
#pragma weak zend_throw_error
#pragma weak zend_throw_exception_ex
#pragma weak zend_wrong_parameter_error
#pragma weak zend_wrong_parameters_count_error
#pragma weak zend_wrong_parameters_none_error
#pragma weak zif_dl

#endif

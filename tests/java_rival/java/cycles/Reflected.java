import java.lang.reflect.Constructor;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Proxy;

/** Reaches what Pulsar's classes keep private, and makes objects that stand for the rest of a broker. */
final class Reflected {
    interface Answers {
        Object to(String method, Object[] given) throws Throwable;
    }

    private Reflected() {
    }

    /** The field of this name, or null where neither the class nor a superclass has it. */
    static Field field(Class<?> type, String name) {
        for (Class<?> one = type; one != null; one = one.getSuperclass()) {
            for (Field field : one.getDeclaredFields()) {
                if (field.getName().equals(name)) {
                    field.setAccessible(true);
                    return field;
                }
            }
        }
        return null;
    }

    @SuppressWarnings("unchecked")
    static <T> T get(Object of, String name) {
        try {
            return (T) required(of, name).get(of);
        } catch (IllegalAccessException error) {
            throw new IllegalStateException(error);
        }
    }

    static void set(Object of, String name, Object value) {
        try {
            required(of, name).set(of, value);
        } catch (IllegalAccessException error) {
            throw new IllegalStateException(error);
        }
    }

    private static Field required(Object of, String name) {
        Field field = field(of.getClass(), name);
        if (field == null) {
            throw new IllegalStateException(of.getClass().getName() + " has no field " + name);
        }
        return field;
    }

    /** The public method of this name, or null where the class has none, as in other releases. */
    static Method method(Class<?> type, String name) {
        for (Method one : type.getMethods()) {
            if (one.getName().equals(name) && !one.isBridge()) {
                return one;
            }
        }
        return null;
    }

    /** Calls a method without parameters. */
    static Object call(Object of, String name) throws Exception {
        Method method = of.getClass().getDeclaredMethod(name);
        method.setAccessible(true);
        try {
            return method.invoke(of);
        } catch (InvocationTargetException error) {
            throw new IllegalStateException(name, error.getCause());
        }
    }

    /** An object that a constructor which is not public makes. */
    static Object made(Constructor<?> by, Object... given) {
        try {
            by.setAccessible(true);
            return by.newInstance(given);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    @SuppressWarnings("unchecked")
    static <T> T proxy(Class<?> type, Answers answers) {
        return (T) Proxy.newProxyInstance(type.getClassLoader(), new Class<?>[] {type},
                (self, method, given) -> answers.to(method.getName(), given));
    }

    /** An object of a class whose constructor would start a broker. */
    static <T> T unconstructed(Class<T> type) {
        try {
            Field field = sun.misc.Unsafe.class.getDeclaredField("theUnsafe");
            field.setAccessible(true);
            return type.cast(((sun.misc.Unsafe) field.get(null)).allocateInstance(type));
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }
}
